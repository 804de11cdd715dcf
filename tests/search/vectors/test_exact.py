"""Exact scores, held against Python's own arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_search import vector_scores
from caraway_search.errors import InvalidSearchError
from caraway_search.vector_scores import METRICS, Metric
from caraway_search.vectors import exact
from caraway_search.vectors.exact import QueryVector


@pytest.mark.parametrize(
    "values",
    [
        [], [0.0], [0.0, -0.0], [math.nan, 1.0], [math.inf], [1e200], [-math.inf, math.inf],
        [1e-60], [[1.0, 2.0]], 5.0,
    ],
)  # fmt: skip
@pytest.mark.parametrize("metric", METRICS)
def test_a_vector_that_nothing_can_be_near_is_refused(values: object, metric: Metric) -> None:
    with pytest.raises(InvalidSearchError, match="is empty, of zeros or not finite"):
        QueryVector.from_values(values, metric)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[1e-40], [3.4e38], [1e-40, 0.0], [-1.0, 2.0], range(1, 4)])
def test_any_other_vector_has_its_length(values: list[float]) -> None:
    query = QueryVector.from_values(values)
    wide = [float(np.float32(value)) for value in values]
    assert math.isclose(query.norm, math.hypot(*wide), rel_tol=1e-12)


NUMBER = st.integers(-50, 50).map(float)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda width: st.tuples(
            st.lists(NUMBER, min_size=width, max_size=width),
            st.lists(st.lists(NUMBER, min_size=width, max_size=width), max_size=8),
        )
    ),
    st.sampled_from(METRICS),
)
def test_scores_are_those_of_exact_arithmetic(
    vectors: tuple[list[float], list[list[float]]], metric: Metric
) -> None:
    asked, others = vectors
    if not any(asked):
        return
    query = QueryVector.from_values(asked, metric)
    matrix = np.array(others, np.float32).reshape(-1, len(asked))
    found = exact.scores(matrix, query)
    assert found.dtype == np.float64
    for score, other in zip(found, others, strict=True):
        if not any(other):
            assert math.isnan(score)  # It has no direction.
            continue
        dot = float(sum(Fraction(a) * Fraction(b) for a, b in zip(asked, other, strict=True)))
        if metric == "dot":
            assert math.isclose(score, dot, abs_tol=1e-9)
        elif metric == "cosine":
            assert math.isclose(score, dot / math.hypot(*asked) / math.hypot(*other), abs_tol=1e-6)
        else:
            away = math.dist(asked, other)
            nearer = exact.scores(np.array([asked], np.float32), query)[0]
            assert score <= nearer
            assert (score == nearer) == (away == 0)


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1024, 1500])
@pytest.mark.parametrize("metric", METRICS)
def test_blocks_leave_no_trace(count: int, metric: Metric) -> None:
    matrix = np.random.default_rng(count).standard_normal((count, 7)).astype(np.float32)
    query = QueryVector.from_values([1.0, 2.0, 3.0, -1.0, 0.5, 0.0, 4.0], metric)
    found = exact.scores(matrix, query)
    assert np.array_equal(found, vector_scores.of_rows(matrix, query.values, metric))
    for row in (0, count // 2, count - 1):
        if 0 <= row < count:
            # A score has the same bits whatever else is compared.
            assert exact.scores(matrix[row : row + 1], query)[0] == found[row]
