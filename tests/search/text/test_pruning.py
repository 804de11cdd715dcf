"""The best rows of alternatives are those of full scoring, and few others are looked at."""

import numpy as np
import pyarrow as pa
import pytest

from caraway_search.queries.parsing import parse
from caraway_search.text.pruning import ScoredRows, candidates
from caraway_search.text.scoring import columns_of, score
from caraway_search.text.segment import TextIndexSpec, TextSegment

ROWS = 4_000
SPEC = TextIndexSpec({"body": 1.0, "title": 2.5})


@pytest.fixture(scope="module")
def segment() -> TextSegment:
    """Texts in which the word `w0` is nearly everywhere, and each further one is rarer."""
    random = np.random.default_rng(3)
    places = np.exp(random.random((ROWS, 12)) * np.log(200)).astype(int) - 1
    bodies = [" ".join(f"w{each}" for each in row[: 3 + n % 9]) for n, row in enumerate(places)]
    titles = [f"w{row[0]} w{row[5]}" if n % 3 else None for n, row in enumerate(places)]
    return TextSegment.build(SPEC, {"body": pa.array(bodies), "title": pa.array(titles)})


def found(
    segment: TextSegment, text: str, limit: int, mask: np.ndarray | None = None
) -> tuple[ScoredRows | None, np.ndarray]:
    """The candidates, and the scores of all rows."""
    query = parse(text, SPEC.analyzer)
    statistics = segment.statistics(query)
    columns = columns_of(segment.postings, SPEC.boosts, statistics)
    scored = score(query, columns, ROWS)
    wanted = scored.scores if mask is None else np.where(mask, scored.scores, 0.0)
    return candidates(query, columns, ROWS, limit, mask), wanted


@pytest.mark.parametrize("text", ["w0 w150", "w0 w1 w90", "w190 w0 w3 w0", "w0 w199 missing"])
@pytest.mark.parametrize("limit", [1, 3, 10])
@pytest.mark.parametrize("masked", [False, True])
def test_few_rows_are_candidates_and_the_best_are_among_them(
    segment: TextSegment, text: str, limit: int, masked: bool
) -> None:
    mask = np.random.default_rng(limit).random(ROWS) < 0.5 if masked else None
    pruned, scores = found(segment, text, limit, mask)
    assert pruned is not None
    assert len(pruned.rows) < np.count_nonzero(scores) / 3
    least = np.sort(scores)[-limit]
    assert set(np.flatnonzero(scores >= least)) <= set(pruned.rows)
    assert list(pruned.rows) == sorted(set(pruned.rows))
    # To the last bit, or two executors would order rows in two ways.
    assert pruned.scores.tobytes() == scores[pruned.rows].tobytes()


@pytest.mark.parametrize(
    "text", ["+w0 w150", "w0 -w150", '"w0 w1" w150', "w0 w15*", "w0 (w1 w150)", "gone away"]
)
def test_other_queries_are_scored_in_full(segment: TextSegment, text: str) -> None:
    assert found(segment, text, 10)[0] is None


def test_more_rows_than_the_rarer_words_have_are_scored_in_full(segment: TextSegment) -> None:
    pruned, scores = found(segment, "w0 w150", ROWS)
    assert pruned is None and np.count_nonzero(scores) > ROWS / 2


def test_no_rows_are_wanted(segment: TextSegment) -> None:
    assert found(segment, "w0 w150", 0)[0] is None
