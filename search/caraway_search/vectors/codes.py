"""Codes of vectors: four bits for two dimensions, and estimates of dot products from them.

A vector is centred, turned by a fixed rotation, which makes its numbers much alike and about normal
for any data, and scaled. Two neighbouring numbers become one of 16 points that are the best for a
normal distribution. So nothing is learnt but a centre and a scale, and building takes little.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_POINTS = np.array(
    [
        [-1.7619, 0.6136], [-1.7337, -0.7077], [-1.0528, 1.7056], [-0.9590, -1.7629],
        [-0.8973, -0.0306], [-0.5070, 0.8088], [-0.4605, -0.8473], [-0.0089, -0.0081],
        [0.2458, 1.8389], [0.3479, -1.8353], [0.4182, 0.7744], [0.4611, -0.7640],
        [0.9491, 0.0228], [1.4035, 1.2204], [1.4708, -1.1441], [2.0002, 0.0535],
    ],
    np.float32,
)  # fmt: skip
_LOSS = 0.1075
"""The mean square error of a number of variance 1 when it is replaced by its point."""
_FAR = 2.0
"""A vector whose error is so many times the usual one is always looked at exactly."""
_MOST_FAR = 0.1
"""With a greater share of such vectors, codes are of no use."""
_LEAST_SPREAD, _LARGEST_SPREAD = 1e-30, 1e30
"""Products of numbers that vary less vanish in 32 bits; squares of larger ones do not fit."""
BLOCK = 8192
"""Vectors that are encoded together."""


@dataclass(frozen=True)
class VectorCodes:
    """The codes of some vectors, with the centre and the scale that give them a meaning.

    `error` is the length of what a code usually loses of its vector. Estimates for the vectors of
    `far` are not trusted.
    """

    codes: NDArray[np.uint8]
    centre: Floats
    scale: float
    error: float
    far: NDArray[np.int64]

    @classmethod
    def build(cls, blocks: Callable[[], Iterator[Floats]], dimensions: int) -> Self | None:
        """Encode vectors, which `blocks` yields anew at each call.

        None if the codes would say too little about them.
        """
        count, total = 0, np.zeros(dimensions)
        with np.errstate(all="ignore"):  # The spread tells what is not finite.
            for block in blocks():
                count += len(block)
                total += block.sum(axis=0, dtype=np.float64)
            centre = (total / count).astype(np.float32)
            squares = sum(float(np.square(b - centre, dtype=np.float64).sum()) for b in blocks())
        spread = squares / (count * dimensions)
        if not (_LEAST_SPREAD < spread < _LARGEST_SPREAD):
            return None
        scale = math.sqrt(spread * dimensions / _even(dimensions))
        quantizer = _quantizer(_even(dimensions))
        codes, errors = [], []
        for block in blocks():
            turned = _turned((block - centre) / np.float32(scale), dimensions)
            codes.append(quantizer.sa_encode(turned))
            errors.append(np.square(turned - quantizer.sa_decode(codes[-1])).sum(axis=1))
        error = np.sqrt(np.concatenate(errors))
        usual = float(np.median(error))
        far = np.flatnonzero(error > _FAR * usual)
        if len(far) > _MOST_FAR * count:
            return None
        return cls(np.concatenate(codes).ravel(), centre, scale, usual * scale, far)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return len(self.centre)

    @cached_property
    def _index(self) -> Any:
        """The codes in the order in which many are compared at once."""
        plain = _quantizer(_even(self.dimensions))
        faiss.copy_array_to_vector(np.ascontiguousarray(self.codes), plain.codes)
        plain.ntotal = len(self)
        return faiss.IndexPQFastScan(plain)

    def __len__(self) -> int:
        return len(self.codes) // _code_size(_even(self.dimensions))

    @property
    def nbytes(self) -> int:
        """The memory of the codes; the index has a copy of them in another order."""
        return 2 * self.codes.nbytes + self.far.nbytes

    def estimates(self, query: Floats, count: int) -> tuple[Floats, NDArray[np.int64]]:
        """The highest estimates of dot products with a query, best first, and their vectors.

        Where all are asked for, each vector is there.
        """
        faiss.omp_set_num_threads(1)
        turned = _turned(query[np.newaxis], self.dimensions)
        found, numbers = self._index.search(turned, min(count, len(self)))
        valid = numbers[0] >= 0
        sums, numbers = found[0][valid], numbers[0][valid]
        if count >= len(self) > len(numbers):
            # It leaves out those with the lowest value there can be.
            others = np.setdiff1d(np.arange(len(self)), numbers, assume_unique=True)
            sums = np.append(sums, np.full(len(others), sums.min(initial=np.inf)))
            numbers = np.append(numbers, others)
        # A point is the mean of what it stands for, so estimates are too small by a known part.
        estimates = sums * np.float32(self.scale / (1 - _LOSS)) + np.float32(
            query.astype(np.float64) @ self.centre.astype(np.float64)
        )
        return estimates, numbers

    def deviation(self, query: Floats) -> float:
        """The standard deviation of an estimate."""
        norm = float(np.linalg.norm(query.astype(np.float64)))
        return norm * self.error / math.sqrt(_even(self.dimensions)) / (1 - _LOSS)


def _even(dimensions: int) -> int:
    return dimensions + dimensions % 2


def _code_size(even: int) -> int:
    return -(-even // 4)


def _quantizer(even: int) -> Any:
    faiss.omp_set_num_threads(1)
    index = faiss.IndexPQ(even, even // 2, 4, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(np.tile(_POINTS, (even // 2, 1)).ravel(), index.pq.centroids)
    index.is_trained = True
    return index


def _turned(vectors: Floats, dimensions: int) -> Floats:
    rotation = _rotation(_even(dimensions))
    return np.ascontiguousarray(vectors @ rotation[:dimensions])


@lru_cache(maxsize=16)
def _rotation(size: int) -> Floats:
    """An orthogonal matrix that is the same on every machine: two cosine transforms with signs."""
    steps = np.arange(size)
    cosines = np.cos(np.pi / size * (steps[:, np.newaxis] + 0.5) * steps) * math.sqrt(2 / size)
    cosines[:, 0] /= math.sqrt(2)
    signs = np.random.Generator(np.random.PCG64(7)).integers(0, 2, (2, size)) * 2 - 1
    turned = (signs[0][:, np.newaxis] * cosines) @ (signs[1][:, np.newaxis] * cosines)
    return np.ascontiguousarray(turned, np.float32)
