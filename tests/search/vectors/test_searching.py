"""Vector searches find the rows that a comparison with all vectors finds."""

from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from caraway_search import vector_scores
from caraway_search.errors import DamagedIndexError, InvalidSearchError
from caraway_search.hits import Hits
from caraway_search.vector_scores import METRICS, Metric
from caraway_search.vectors import codes, looking, searching, segment
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.segment import VectorIndexSpec, VectorSegment
from tests.search.vectors.vector_columns import Floats, column


def joined(hits: list[Hits], starts: list[int]) -> dict[int, float]:
    return {
        start + int(row): float(score)
        for start, each in zip(starts, hits, strict=True)
        for row, score in zip(each.rows, each.scores, strict=True)
    }


def brute(
    vectors: Floats, query: QueryVector, passes: NDArray[np.bool_], limit: int
) -> dict[int, float]:
    """The best rows by comparing all, with those that tie with the last."""
    scores = vector_scores.of_rows(vectors, query.values, query.metric)
    rows = [n for n in range(len(scores)) if passes[n] and not np.isnan(scores[n])]
    if limit <= 0:
        return {}
    least = sorted((scores[n] for n in rows), reverse=True)[:limit]
    return {n: float(scores[n]) for n in rows if scores[n] >= least[-1]} if least else {}


NUMBER = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, float("nan"), float("inf"), 1e30, -1e-30])


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(NUMBER, NUMBER, NUMBER), max_size=20),
    metric=st.sampled_from(METRICS),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    limit=st.integers(0, 8),
    data=st.data(),
)
def test_any_split_finds_what_a_comparison_with_all_finds(
    rows: list[tuple[float, float, float]],
    metric: Metric,
    cuts: list[int],
    limit: int,
    data: st.DataObject,
) -> None:
    vectors = np.array(rows, np.float32).reshape(-1, 3)
    passes = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool
    )
    bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    spec = VectorIndexSpec(3, metric)
    starts = bounds[:-1]
    segments = [VectorSegment.build(spec, column(vectors[a:b])) for a, b in pairwise(bounds)]
    masks = [passes[a:b] for a, b in pairwise(bounds)]
    query = QueryVector.from_values([1.0, -0.5, 0.25], metric)
    found = searching.search(segments, query, limit, masks)
    assert joined(found, starts) == brute(vectors, query, passes, limit)
    finite = np.isfinite(vectors).all(axis=1)
    assert sum(s.left_out for s in segments) == np.count_nonzero(~(finite & vectors.any(axis=1)))


@pytest.fixture(scope="module")
def unclustered() -> Floats:
    """Vectors that are all about equally far from each other, the worst case for estimates."""
    vectors = np.random.default_rng(5).standard_normal((12_000, 48), dtype=np.float32)
    vectors[77] = 0
    return vectors


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
def test_estimates_find_nearly_all(unclustered: Floats, metric: Metric, share: float) -> None:
    vectors = unclustered.copy()
    if metric == "cosine":
        vectors += 3  # most of each vector is what all have in common
    bounds = [0, 5000, 10_000, 12_000]
    spec = VectorIndexSpec(48, metric, recall=0.98)
    segments = [VectorSegment.build(spec, column(vectors[a:b])) for a, b in pairwise(bounds)]
    assert [s.codes is not None for s in segments] == [True, True, False]
    random = np.random.default_rng(6)
    wanted, found = 0, 0
    for _ in range(20):
        passes = random.random(12_000) < share
        masks = None if share == 1 else [passes[a:b] for a, b in pairwise(bounds)]
        query = QueryVector.from_values(random.standard_normal(48), metric)
        hits = joined(searching.search(segments, query, 10, masks), bounds[:-1])
        expected = brute(vectors, query, passes, 10)
        assert len(hits) == 10 and (share == 1 or all(passes[row] for row in hits))
        assert all(expected[row] == score for row, score in hits.items() if row in expected)
        wanted, found = wanted + len(expected), found + len(expected.keys() & hits.keys())
    assert found / wanted >= (0.98 if share > 0.01 else 1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e37])
@pytest.mark.parametrize("recall", [0.98, 1.0])
def test_very_short_and_very_long_vectors_are_found(
    metric: Metric, scale: float, recall: float
) -> None:
    random = np.random.Generator(np.random.PCG64(6))
    vectors = (random.normal(size=(4200, 8)) * scale).astype(np.float32)
    query = QueryVector.from_values(random.normal(size=8) * scale, metric)
    (hits,) = searching.search(
        [VectorSegment.build(VectorIndexSpec(8, metric, recall), column(vectors))], query, 10
    )
    expected = brute(vectors, query, np.ones(4200, np.bool_), 10)
    found = expected.keys() & set(hits.rows.tolist())
    assert len(found) >= (len(expected) if recall == 1 else 0.9 * len(expected))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("limit", [5000, 4990, 9000])
def test_a_search_for_all_rows_finds_all(metric: Metric, limit: int) -> None:
    """Of few dimensions: many codes are the worst that there are for a query."""
    random = np.random.Generator(np.random.PCG64(4))
    vectors = random.normal(size=(5000, 2)).astype(np.float32)
    built = VectorSegment.build(VectorIndexSpec(2, metric), column(vectors))
    assert built.codes is not None
    query = QueryVector.from_values([1.0, 0.25], metric)
    (hits,) = searching.search([built], query, limit)
    assert len(hits.rows) >= min(limit, 5000)


def test_full_recall_needs_no_codes(unclustered: Floats) -> None:
    built = VectorSegment.build(VectorIndexSpec(48, recall=1.0), column(unclustered))
    assert built.codes is None
    query = QueryVector.from_values(unclustered[3])
    (hits,) = searching.search([built], query, 1000)
    assert joined([hits], [0]) == brute(unclustered, query, np.ones(12_000, bool), 1000)


def test_more_rows_than_estimates_say_are_compared_exactly(unclustered: Floats) -> None:
    built = VectorSegment.build(VectorIndexSpec(48), column(unclustered))
    query = QueryVector.from_values(unclustered[3])
    (hits,) = searching.search([built], query, 11_000)
    assert joined([hits], [0]) == brute(unclustered, query, np.ones(12_000, bool), 11_000)
    (hits,) = searching.search([built], query, 12_000)
    assert len(hits.rows) == 11_999  # the vector of zeros is left out


def test_vectors_unlike_the_others_are_always_looked_at(
    unclustered: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = unclustered[:6000].copy()
    # Of too many lengths to be a group.
    vectors[::50] *= np.geomspace(5, 5000, 120, dtype=np.float32)[:, np.newaxis]
    built = VectorSegment.build(VectorIndexSpec(48, "dot"), column(vectors))
    assert built.codes is not None and len(built.codes.far) >= 120
    query = QueryVector.from_values(vectors[1], "dot")
    (hits,) = searching.search([built], query, 20)
    assert joined([hits], [0]) == brute(vectors, query, np.ones(6000, bool), 20)
    monkeypatch.setattr(codes, "_MOST_FAR", 0.01)
    assert VectorSegment.build(VectorIndexSpec(48, "dot"), column(vectors)).codes is None


def test_equal_vectors_have_no_codes() -> None:
    built = VectorSegment.build(VectorIndexSpec(4), column(np.ones((5000, 4), np.float32)))
    assert built.codes is None
    (hits,) = searching.search([built], QueryVector.from_values([1, 1, 1, 0]), 3)
    assert len(hits.rows) == 5000


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5, 7])
def test_few_and_odd_dimensions_can_be_coded(dimensions: int) -> None:
    vectors = np.random.default_rng(1).standard_normal((6000, dimensions), dtype=np.float32)
    spec = VectorIndexSpec(dimensions, "l2", 0.9)
    built = VectorSegment.build(spec, column(vectors))
    query = QueryVector.from_values(vectors[9], "l2")
    (hits,) = searching.search([VectorSegment.opened(built.packed(), column(vectors))], query, 1)
    assert joined([hits], [0]) == {9: 0.0}


def test_rows_of_several_vectors_have_the_best_of_them() -> None:
    lists = [
        [[1, 0], [0, 1]],
        None,
        [],
        [[0, 0], [3, 4]],
        [[4, 3], [5, 0], [1, 0]],
        [None, [0, -1]],
    ]
    for type_ in (
        pa.list_(pa.list_(pa.float32(), 2)),
        pa.large_list(pa.list_(pa.float64())),
        pa.list_(pa.list_(pa.float16(), 2)),
    ):
        array = pa.array([[[9, 9]], *lists], type_).slice(1)
        built = VectorSegment.build(VectorIndexSpec(2), array)
        (hits,) = searching.search([built], QueryVector.from_values([1, 0]), 3)
        assert (hits.rows.tolist(), hits.scores.tolist()) == ([0, 3, 4], [1.0, 0.6, 1.0])
        assert hits.parts is not None and hits.parts.tolist() == [0, 1, 1]
        assert built.left_out == 1
        mask = np.array([False, True, True, True, True, True])
        (hits,) = searching.search([built], QueryVector.from_values([1, 0]), 1, [mask])
        assert hits.rows.tolist() == [4]


def test_estimates_of_rows_of_several_vectors(unclustered: Floats) -> None:
    array = pa.ListArray.from_arrays(np.arange(0, 12_001, 3), column(unclustered))
    built = VectorSegment.build(VectorIndexSpec(48, recall=0.999), array)
    assert built.codes is not None
    query = QueryVector.from_values(unclustered[30] + unclustered[31])
    (hits,) = searching.search([built], query, 5)
    best = brute(unclustered, query, np.ones(12_000, bool), 40)
    by_row: dict[int, float] = {}
    for vector, score in best.items():
        by_row[vector // 3] = max(by_row.get(vector // 3, -1.0), score)
    expected = dict(sorted(by_row.items(), key=lambda item: -item[1])[:5])
    assert joined([hits], [0]) == expected
    assert hits.parts is not None and hits.parts[list(hits.rows).index(10)] in (0, 1)


@pytest.mark.parametrize("rows", [100, 6000])
def test_a_packed_segment_finds_the_same(unclustered: Floats, rows: int) -> None:
    vectors = column(unclustered[:rows])
    built = VectorSegment.build(VectorIndexSpec(48), vectors)
    block = built.packed()
    opened = VectorSegment.opened(memoryview(block), vectors)
    query = QueryVector.from_values(unclustered[5] + 0.1)
    (one,), (other,) = searching.search([built], query, 9), searching.search([opened], query, 9)
    assert joined([one], [0]) == joined([other], [0])
    assert (opened.spec, opened.nbytes) == (built.spec, built.nbytes)
    with pytest.raises(DamagedIndexError, match="is not that of a column"):
        VectorSegment.opened(block, vectors.slice(1))
    with pytest.raises(DamagedIndexError):
        VectorSegment.opened(block[:-1], vectors)


def test_what_cannot_be_searched_is_an_error() -> None:
    with pytest.raises(InvalidSearchError, match="vectors of 2 numbers"):
        built = VectorSegment.build(VectorIndexSpec(2), pa.array([[1.0, 2.0]]))
        searching.search([built], QueryVector.from_values([1, 2, 3]), 1)
    for query in ([], [0, 0], [float("nan"), 1], [float("inf"), 1], [1e300, 0]):
        with pytest.raises(InvalidSearchError, match="to search for"):
            QueryVector.from_values(query)
    for wrong in (pa.array([1.0]), pa.array([["a"]]), pa.array([[1]]), pa.array(["x"])):
        with pytest.raises(InvalidSearchError, match="vectors are lists of floats"):
            VectorSegment.build(VectorIndexSpec(1), wrong)


def test_limits_are_those_that_were_measured() -> None:
    """The decision page names them."""
    assert (segment.FEWEST_CODED, looking.FEW_VECTORS, looking.SMALL_SHARE) == (4096, 2048, 0.05)


@pytest.mark.parametrize("metric", METRICS)
def test_of_many_rows_the_share_that_is_asked_for_is_found(
    unclustered: Floats, metric: Metric
) -> None:
    built = VectorSegment.build(VectorIndexSpec(48, metric, recall=0.98), column(unclustered))
    random = np.random.default_rng(8)
    wanted = found = 0
    for _ in range(20):
        query = QueryVector.from_values(random.standard_normal(48), metric)
        (hits,) = searching.search([built], query, 100)
        expected = brute(unclustered, query, np.ones(12_000, np.bool_), 100)
        assert len(hits.rows) >= 100
        wanted, found = wanted + 100, found + len(expected.keys() & set(hits.rows.tolist()))
    assert 0.98 <= found / wanted < 1


def test_estimates_need_less_room_where_the_best_rows_are_far_above_the_last() -> None:
    most = searching.needed_z(0.98, np.zeros(0))
    assert most == pytest.approx(2.05, abs=0.01)
    # Few rows, and many that are all at the bar: each could be missed.
    assert searching.needed_z(0.98, np.linspace(0, 3, 10)) == most
    assert searching.needed_z(0.98, np.zeros(100)) == pytest.approx(most)
    far = searching.needed_z(0.98, np.linspace(0, 3, 100))
    assert 0.3 * most <= far < 0.8 * most
    missed = [1 - NormalDist().cdf(far + each) for each in np.linspace(0, 3, 100)]
    assert sum(missed) / 100 <= 0.0201
    assert searching.needed_z(0.5, np.linspace(0, 3, 100)) == 0


def test_the_first_search_of_a_segment_finds_its_codes_ready(unclustered: Floats) -> None:
    built = VectorSegment.build(VectorIndexSpec(48), column(unclustered))
    assert built.codes is not None
    ready = vars(built.codes)["_indexed"]
    searching.search([built], QueryVector.from_values(unclustered[3]), 10)
    assert built.codes._indexed is ready
