"""Codes estimate dot products without bias and within the error that they report."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from caraway_search import vector_scores
from caraway_search.vector_scores import METRICS, Metric
from caraway_search.vectors import searching
from caraway_search.vectors.codes import WIDTH, VectorCodes
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.segment import VectorIndexSpec, VectorSegment
from tests.search.vectors.vector_columns import column

Floats = NDArray[np.float32]
RANDOM = np.random.Generator(np.random.PCG64(5))


def blocks(vectors: Floats, size: int = 700) -> Callable[[], Iterator[Floats]]:
    return lambda: (vectors[first : first + size] for first in range(0, len(vectors), size))


def built(vectors: Floats) -> VectorCodes:
    codes = VectorCodes.build(blocks(vectors), vectors.shape[1])
    assert codes is not None
    return codes


def normal(count: int, width: int) -> Floats:
    return RANDOM.normal(size=(count, width)).astype(np.float32)


SHAPES: dict[str, Callable[[int, int], Floats]] = {
    "normal": normal,
    "far from zero": lambda n, d: normal(n, d) + np.float32(1000),
    "tiny": lambda n, d: normal(n, d) * np.float32(1e-12),
    "huge": lambda n, d: normal(n, d) * np.float32(1e12),
    "signs": lambda n, d: np.sign(normal(n, d)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dimensions", [8, 33, 64])
def test_estimates_are_as_wrong_as_they_say(shape: str, dimensions: int) -> None:
    vectors = SHAPES[shape](1500, dimensions)
    codes = built(vectors)
    query = normal(1, dimensions)[0]
    estimates = codes.estimates(query, len(vectors))
    found, numbers = estimates.likely, estimates.numbers
    assert {*numbers.tolist(), *codes.far.tolist()} == set(range(len(vectors)))
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    trusted = ~np.isin(numbers, codes.far)
    errors = ((found - exact[numbers]) / estimates.deviations)[trusted]
    assert np.abs(errors).max() < 6 and abs(errors.mean()) < 0.25


@pytest.mark.parametrize("dimensions", [2, 3, 4, 5])
def test_vectors_with_the_lowest_estimate_are_there(dimensions: int) -> None:
    codes, query = built(normal(3000, dimensions)), normal(1, dimensions)[0]
    estimates = codes.estimates(query, 3000)
    numbers = estimates.numbers
    assert {*numbers.tolist(), *codes.far.tolist()} == set(range(3000))
    assert len(estimates.likely) == len(set(numbers.tolist())) == len(codes)


def test_fewer_estimates_are_the_best_ones() -> None:
    vectors = normal(2000, 32)
    codes, query = built(vectors), normal(1, 32)[0]
    every = codes.estimates(query, 10_000).likely
    few = codes.estimates(query, 7).likely
    assert sorted(few)[-7:] == sorted(every)[-7:]


def test_how_vectors_come_changes_nothing() -> None:
    vectors = normal(1000, 10)
    whole = VectorCodes.build(blocks(vectors, 1000), 10)
    parts = VectorCodes.build(blocks(vectors, 137), 10)
    assert whole is not None and parts is not None
    for one, other in zip(whole.groups, parts.groups, strict=True):
        assert np.mean(one.codes != other.codes) < 0.001
        assert one.members.tolist() == other.members.tolist()
        assert one.scale == pytest.approx(other.scale)
    assert whole.far.tolist() == parts.far.tolist()


def test_vectors_unlike_all_others_are_told() -> None:
    vectors = normal(2000, 16)
    vectors[[3, 1999]] *= 50
    far = built(vectors).far.tolist()
    assert {3, 1999} <= set(far) and len(far) < 100


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones((100, 4), np.float32),
        np.zeros((100, 4), np.float32),
        np.array([[3e38, -3e38]] * 50 + [[-3e38, 3e38]] * 50, np.float32),
    ],
)
def test_vectors_that_codes_say_nothing_of_have_none(vectors: Floats) -> None:
    assert VectorCodes.build(blocks(vectors), vectors.shape[1]) is None


def test_vectors_of_which_many_are_unlike_the_others_have_none() -> None:
    vectors = normal(1000, 8) * np.geomspace(1, 1e9, 1000, dtype=np.float32)[:, np.newaxis]
    assert VectorCodes.build(blocks(vectors), 8) is None


def topical(count: int, dimensions: int) -> Floats:
    """Sums of a few of many words, of which some are in most texts: lengths differ by far."""
    random = np.random.default_rng(3)
    words = random.standard_normal((2000, dimensions))
    frequencies = 1 / np.arange(1, 2001)
    lengths = random.integers(3, 40, count)
    chosen = random.choice(2000, lengths.sum(), p=frequencies / frequencies.sum())
    starts = np.concatenate(([0], np.cumsum(lengths[:-1])))
    return np.add.reduceat(words[chosen], starts).astype(np.float32)


def queries(dimensions: int) -> Floats:
    words = np.random.default_rng(3).standard_normal((2000, dimensions))
    random = np.random.default_rng(8)
    return np.stack([words[random.integers(0, 2000, 4)].sum(axis=0) for _ in range(40)]).astype(
        np.float32
    )


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_of_many_lengths_are_found(metric: Metric) -> None:
    vectors = topical(6_000, 32)
    built = VectorSegment.build(VectorIndexSpec(32, metric, recall=0.98), column(vectors))
    found = 0
    for each in queries(32):
        query = QueryVector.from_values(each, metric)
        best = np.argsort(-vector_scores.of_rows(vectors, each, metric))[:10]
        (hits,) = searching.search([built], query, 10)
        found += len(set(best.tolist()) & set(hits.rows.tolist()))
    assert found / 400 >= 0.98


def test_vectors_of_about_one_distance_are_a_group() -> None:
    vectors = np.random.default_rng(1).standard_normal((5_000, 64)).astype(np.float32)
    made = VectorCodes.build(lambda: iter([vectors]), 64)
    assert made is not None and len(made.groups) <= 3
    vectors[:2_000] *= 3
    made = VectorCodes.build(lambda: iter([vectors[:3_000], vectors[3_000:]]), 64)
    assert made is not None
    distances = np.linalg.norm(vectors - made.centre, axis=1)
    for group in made.groups:
        own = distances[group.members]
        assert own.max() / np.median(own) <= WIDTH
    members = np.concatenate([group.members for group in made.groups])
    assert len(np.unique(members)) == len(members)
    assert {*members.tolist(), *made.far.tolist()} == set(range(5_000))


def test_no_estimate_is_above_the_bound_that_is_told() -> None:
    vectors = topical(5_000, 32)
    made = VectorCodes.build(lambda: iter([vectors]), 32)
    assert made is not None
    query = queries(32)[0]
    every = made.estimates(query, 5_000)
    assert every.bound(2.0) == -math.inf and len(every.likely) == len(made)
    for z in (0.0, 2.0):
        by_number = dict(zip(every.numbers.tolist(), every.above(z).tolist(), strict=True))
        for count in (1, 64, 700):
            some = made.estimates(query, count)
            others = by_number.keys() - set(some.numbers.tolist())
            assert max(by_number[each] for each in others) <= some.bound(z)
