"""Codes estimate dot products without bias and within the error that they tell."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from caraway_search.vectors.codes import VectorCodes

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
    found, numbers = codes.estimates(query, len(vectors))
    assert sorted(numbers.tolist()) == list(range(len(vectors)))
    assert all(np.diff(found) <= 0)
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    trusted = ~np.isin(numbers, codes.far)
    errors = (found.astype(np.float64) - exact[numbers])[trusted] / codes.deviation(query)
    assert np.abs(errors).max() < 6 and abs(errors.mean()) < 0.25


@pytest.mark.parametrize("dimensions", [2, 3, 4, 5])
def test_vectors_with_the_lowest_estimate_are_there(dimensions: int) -> None:
    codes, query = built(normal(3000, dimensions)), normal(1, dimensions)[0]
    found, numbers = codes.estimates(query, 3000)
    assert sorted(numbers.tolist()) == list(range(3000)) and len(found) == 3000
    assert all(np.diff(found) <= 0)


def test_fewer_estimates_are_the_best_ones() -> None:
    vectors = normal(2000, 32)
    codes, query = built(vectors), normal(1, 32)[0]
    every, _ = codes.estimates(query, 10_000)
    few, _ = codes.estimates(query, 7)
    assert few.tolist() == every[:7].tolist()


def test_how_vectors_come_changes_nothing() -> None:
    vectors = normal(1000, 10)
    whole = VectorCodes.build(blocks(vectors, 1000), 10)
    parts = VectorCodes.build(blocks(vectors, 137), 10)
    assert whole is not None and parts is not None
    assert np.mean(whole.codes != parts.codes) < 0.001
    assert whole.scale == pytest.approx(parts.scale) and whole.far.tolist() == parts.far.tolist()


def test_vectors_unlike_all_others_are_told() -> None:
    vectors = normal(2000, 16)
    vectors[[3, 1999]] *= 50
    assert built(vectors).far.tolist() == [3, 1999]


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
    vectors = normal(1000, 8)
    vectors[::5] *= 1000
    assert VectorCodes.build(blocks(vectors), 8) is None
