"""Scores of vectors are exact, and those of a row do not depend on the other rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.errors import InvalidSearchError
from caraway_search.vector_scores import METRICS, Metric, of_rows
from caraway_search.vectors import exact
from caraway_search.vectors.exact import QueryVector

NUMBERS = st.floats(width=32)
VECTORS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=6)
QUERY = st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=3, max_size=3).filter(any)


def plain(row: list[float], query: list[float], metric: Metric) -> float:
    """The score of one row by sums that lose nothing."""
    if not all(map(math.isfinite, row)) or not any(row):
        return math.nan
    dot = math.fsum(a * b for a, b in zip(row, query, strict=True))
    if metric == "l2":
        return -math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(row, query, strict=True)))
    if metric == "cosine":
        return dot / math.hypot(*row) / math.hypot(*query)
    return dot


@given(VECTORS, QUERY, st.sampled_from(METRICS))
def test_each_row_has_its_score(
    rows: list[list[float]], query: list[float], metric: Metric
) -> None:
    vectors = np.array(rows, np.float32).reshape(-1, 3)
    found = of_rows(vectors, np.array(query, np.float32), metric)
    for number, row in enumerate(rows):
        expected = plain(row, query, metric)
        size = math.hypot(*query) * (math.hypot(*row) if metric == "dot" else 1)
        allowed = 1e-12 if metric == "cosine" else 1e-9 * max(size, abs(expected), 1e-300)
        assert (math.isnan(expected) and np.isnan(found[number])) or (
            abs(found[number] - expected) <= allowed
        )
        alone = of_rows(vectors[number : number + 1], np.array(query, np.float32), metric)
        assert alone.tobytes() == found[number : number + 1].tobytes()


def test_many_rows_are_scored_as_few_are() -> None:
    vectors = np.random.Generator(np.random.PCG64(3)).normal(size=(1300, 7)).astype(np.float32)
    query = QueryVector.from_values(vectors[0], "l2")
    found = exact.scores(vectors, query)
    assert found.tobytes() == of_rows(vectors, query.values, "l2").tobytes()
    assert found.argmax() == 0 and found[0] == 0


@pytest.mark.parametrize(
    "values",
    [[], [0.0, 0.0], [math.nan], [math.inf, 1.0], [1e300], [1e-300], [[1.0], [2.0]], 5.0, [-0.0]],
)
def test_what_has_no_direction_cannot_be_looked_for(values: object) -> None:
    with pytest.raises(InvalidSearchError, match="empty, of zeros or not finite"):
        QueryVector.from_values(values)  # type: ignore[arg-type] # what users may send
