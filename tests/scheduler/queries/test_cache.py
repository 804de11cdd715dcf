import pyarrow as pa

from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.ids import PUBLIC, CatalogVersion, PrincipalId
from caraway_core.statements import Statement
from caraway_scheduler.queries.cache import ResultsCache

ROWS = [pa.record_batch({"a": list(range(1000))})]
SCHEMA = ROWS[0].schema
V1, V2 = CatalogVersion(1), CatalogVersion(2)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def cache(max_size: int = 1_000_000, clock: Clock | None = None) -> ResultsCache:
    return ResultsCache(CacheSettings(max_size_bytes=max_size, ttl_s=1), clock or Clock())


def test_key_distinguishes_principals_versions_texts_and_values() -> None:
    statement = Statement("SELECT $a", {"a": 1})
    keys = {
        ResultsCache.key(PUBLIC, V1, statement),
        ResultsCache.key(PrincipalId("other"), V1, statement),
        ResultsCache.key(PUBLIC, V2, statement),
        ResultsCache.key(PUBLIC, V1, Statement("SELECT $a", {"a": 2})),
        ResultsCache.key(PUBLIC, V1, Statement("SELECT $a", {"a": "1"})),
        ResultsCache.key(PUBLIC, V1, Statement("SELECT  $a", {"a": 1})),
    }
    assert len(keys) == 6


def test_answer_is_kept_until_its_time_is_over() -> None:
    clock = Clock()
    answers = cache(clock=clock)
    key = ResultsCache.key(PUBLIC, V1, Statement("SELECT 1", {}))
    answers.put(key, SCHEMA, ROWS)
    clock.now = 0.99
    found = answers.get(key)
    assert found is not None and found.batches == tuple(ROWS)
    clock.now = 1.0
    assert answers.get(key) is None
    assert (answers.requests, answers.hits, len(answers), answers.size_bytes) == (2, 1, 0, 0)


def test_least_recently_used_goes_first_and_size_is_bounded() -> None:
    answers = cache(max_size=80_000)
    keys = [ResultsCache.key(PUBLIC, V1, Statement(f"SELECT {n}", {})) for n in range(12)]
    for key in keys[:9]:
        answers.put(key, SCHEMA, ROWS)
    assert answers.get(keys[0]) is not None
    answers.put(keys[9], SCHEMA, ROWS)
    assert answers.size_bytes <= 80_000
    assert answers.get(keys[0]) is not None
    assert answers.get(keys[1]) is None


def test_answer_of_over_an_eighth_is_not_kept() -> None:
    answers = cache(max_size=8_000)
    key = ResultsCache.key(PUBLIC, V1, Statement("SELECT 1", {}))
    answers.put(key, SCHEMA, ROWS)
    assert len(answers) == 0


def test_clear_forgets_everything() -> None:
    answers = cache()
    key = ResultsCache.key(PUBLIC, V1, Statement("SELECT 1", {}))
    answers.put(key, SCHEMA, ROWS)
    answers.clear()
    assert answers.get(key) is None
    assert answers.size_bytes == 0


def test_answer_that_began_before_everything_was_forgotten_is_not_kept() -> None:
    answers = cache()
    key = ResultsCache.key(PUBLIC, V1, Statement("SELECT 1", {}))
    since = answers.clears
    answers.clear()
    answers.put(key, SCHEMA, ROWS, since)
    assert answers.get(key) is None
    answers.put(key, SCHEMA, ROWS, answers.clears)
    assert answers.get(key) is not None
