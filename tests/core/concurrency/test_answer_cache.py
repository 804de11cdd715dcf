from caraway_core.concurrency.answer_cache import AnswerCache, CacheSettings
from tests.kit.clocks import Clock


class Texts(AnswerCache[str, str]):
    WHAT = "texts"


def test_without_a_time_answers_stay() -> None:
    clock = Clock()
    texts = Texts(CacheSettings(ttl_s=None), clock)
    texts.add("a", "key", "text", 1)
    clock.now += 1e9
    assert texts.get("key") == "text"


def test_holder_with_most_makes_room() -> None:
    texts = Texts(CacheSettings(80), Clock())
    texts.add("small", "first", "text", 10)
    for number in range(8):
        texts.add("large", str(number), "text", 10)
    assert "first" in texts and "0" not in texts
    assert (len(texts), texts.size_bytes) == (8, 80)


def test_expired_answer_is_there_until_somebody_asks() -> None:
    clock = Clock()
    texts = Texts(CacheSettings(80, 1), clock)
    texts.add("a", "key", "text", 10)
    clock.now += 1
    assert "key" in texts
    assert texts.get("key") is None
    assert ("key" in texts, texts.size_bytes) == (False, 0)
