"""The built-in reranker puts texts with the words of the query first."""

from caraway_search.ranking.lexical import LexicalReranker


def test_words_their_coverage_and_their_order_count() -> None:
    texts = ["nothing", "a red car stood", "cars are red", "the red house", "Red Cars, red cars!"]
    scores = LexicalReranker().scores("red car", texts)
    order = sorted(range(len(texts)), key=lambda n: -scores[n])
    assert order == [4, 1, 2, 3, 0]
    assert scores[0] == 0 and all(0 <= score <= 1 for score in scores)
    assert scores == LexicalReranker().scores("red car", texts)


def test_nothing_to_compare() -> None:
    reranker = LexicalReranker()
    assert reranker.scores("?!", ["a", "b"]) == [0.0, 0.0]
    assert reranker.scores("a", []) == []
    assert reranker.scores("word " * 1000, [""]) == [0.0]
