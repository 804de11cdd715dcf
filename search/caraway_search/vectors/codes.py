"""Codes of vectors: four bits for two dimensions, and estimates of dot products from them.

A vector is centred, turned by a fixed rotation, which makes its numbers much alike and about normal
for any data, and scaled. Two neighbouring numbers become one of 16 points that are the best for a
normal distribution. So nothing is learnt but a centre and a few scales, and building takes little.

Vectors that are further from the centre need a greater scale: points that are too near would make
them shorter, and too many estimates too low. So vectors of about one distance are a group.
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
Numbers = NDArray[np.int64]

_POINTS = np.array(
    [
        [-1.7619, 0.6136], [-1.7337, -0.7077], [-1.0528, 1.7056], [-0.9590, -1.7629],
        [-0.8973, -0.0306], [-0.5070, 0.8088], [-0.4605, -0.8473], [-0.0089, -0.0081],
        [0.2458, 1.8389], [0.3479, -1.8353], [0.4182, 0.7744], [0.4611, -0.7640],
        [0.9491, 0.0228], [1.4035, 1.2204], [1.4708, -1.1441], [2.0002, 0.0535],
    ],
    np.float32,
)  # fmt: skip
WIDTH = 1.25
"""The greatest distance in most groups, as a multiple of the least."""
_MOST_GROUPS = 8
_FEWEST = 64
"""Fewer vectors do not form a group: comparing them exactly is as fast as estimating."""
_USUAL = 0.9
"""The part of the vectors whose error is at most the usual one."""
_FAR = 1.5
"""A vector whose error is this multiple of the usual one is always compared exactly."""
_MOST_FAR = 0.1
"""With a greater share of such vectors, codes are of no use."""
_LEAST_SPREAD, _LARGEST_SPREAD = 1e-30, 1e30
"""Products of numbers that vary less vanish in 32 bits; squares of larger ones do not fit."""
BLOCK = 8192
"""Vectors that are encoded together."""


@dataclass(frozen=True)
class CodeGroup:
    """The codes of vectors of about one distance from the centre.

    `members` are the numbers of the vectors. `scale` turns a product with a code into an estimate,
    and `error` is the norm of the quantization error.
    """

    members: NDArray[np.int32]
    codes: NDArray[np.uint8]
    scale: float
    error: float

    def __len__(self) -> int:
        return len(self.members)

    def index(self, dimensions: int) -> Any:
        """Return the codes in the order in which many are compared at once."""
        plain = _quantizer(_even(dimensions))
        faiss.copy_array_to_vector(np.ascontiguousarray(self.codes), plain.codes)
        plain.ntotal = len(self)
        return faiss.IndexPQFastScan(plain)

    def estimates(self, index: Any, turned: Floats, count: int) -> tuple[Floats, Numbers]:
        """Return the highest estimates, best first, and the numbers of their vectors.

        If `count` is at least their number, all vectors are returned.
        """
        found, places = index.search(turned, min(count, len(self)))
        valid = places[0] >= 0
        sums, chosen = found[0][valid], places[0][valid]
        if count >= len(self) > len(chosen):
            # It leaves out those with the lowest value there can be.
            others = np.setdiff1d(np.arange(len(self)), chosen, assume_unique=True)
            sums = np.append(sums, np.full(len(others), sums.min(initial=np.inf)))
            chosen = np.append(chosen, others)
        return sums * np.float32(self.scale), self.members[chosen].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Likely values of products with some vectors, and the standard deviation of each.

    `others` has, for each group of which some vectors are not here, the highest likely value that
    those can have, and their deviation.
    """

    likely: Floats
    deviations: Floats
    numbers: Numbers
    others: tuple[tuple[np.float32, np.float32], ...]

    def above(self, z: float) -> Floats:
        """Return upper bounds of the products, at `z` standard deviations."""
        return self.likely + np.float32(z) * self.deviations

    def bound(self, z: float) -> float:
        """Return an upper bound of the products with the other vectors, at `z` deviations."""
        # Rounded as those of `above`.
        highest = (float(likely + np.float32(z) * own) for likely, own in self.others)
        return max(highest, default=-math.inf)


@dataclass(frozen=True)
class VectorCodes:
    """The codes of some vectors, with the centre and the scales that give them a meaning.

    Vectors of `far`, some of which have no code, are always looked at exactly.
    """

    centre: Floats
    groups: tuple[CodeGroup, ...]
    far: Numbers

    @classmethod
    def build(cls, blocks: Callable[[], Iterator[Floats]], dimensions: int) -> Self | None:
        """Encode vectors; each call of `blocks` yields all of them.

        Returns None if the codes would be too imprecise.
        """
        count, total = 0, np.zeros(dimensions)
        with np.errstate(all="ignore"):  # The spread tells what is not finite.
            for block in blocks():
                count += len(block)
                total += block.sum(axis=0, dtype=np.float64)
            centre = (total / count).astype(np.float32)
            parts = [np.square(b - centre, dtype=np.float64).sum(axis=1) for b in blocks()]
            squares = np.concatenate(parts)
            spread = float(squares.mean()) / dimensions
        if not (_LEAST_SPREAD < spread < _LARGEST_SPREAD):
            return None
        distances = np.sqrt(squares)
        chosen = _grouped(distances)
        encoders = [_Encoder(distances[chosen == n], dimensions) for n in range(chosen.max() + 1)]
        first = 0
        for block in blocks():
            own = chosen[first : first + len(block)]
            first += len(block)
            for number, encoder in enumerate(encoders):
                if (wanted := own == number).any():
                    encoder.add(_turned(block[wanted] - centre, dimensions))
        far = [np.flatnonzero(chosen < 0)]
        groups = []
        for number, encoder in enumerate(encoders):
            members = np.flatnonzero(chosen == number)
            group, errors = encoder.group(members.astype(np.int32))
            groups.append(group)
            far.append(members[errors > _FAR * group.error])
        every = np.sort(np.concatenate(far))
        return None if len(every) > _MOST_FAR * count else cls(centre, tuple(groups), every)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return len(self.centre)

    def prepare(self) -> None:
        """Do now what the first search would have to."""
        _ = self._indexed

    @cached_property
    def _indexed(self) -> list[object]:
        return [group.index(self.dimensions) for group in self.groups]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    @property
    def nbytes(self) -> int:
        """The memory of the codes; the indexes have a copy of them in another order."""
        own = sum(2 * group.codes.nbytes + group.members.nbytes for group in self.groups)
        return own + self.far.nbytes

    def estimates(self, query: Floats, count: int) -> Estimates:
        """Estimate dot products with a query: the highest, about `count` of each group."""
        faiss.omp_set_num_threads(1)
        turned = _turned(query[np.newaxis], self.dimensions)
        wide = query.astype(np.float64)
        middle = float(wide @ self.centre.astype(np.float64))
        deviation = float(np.linalg.norm(wide)) / math.sqrt(_even(self.dimensions))
        likely, deviations, numbers, others = [], [], [], []
        for group, index in zip(self.groups, self._indexed, strict=True):
            found, members = group.estimates(index, turned, count)
            found += np.float32(middle)
            own = np.float32(deviation * group.error)
            likely.append(found)
            numbers.append(members)
            deviations.append(np.full(len(found), own, np.float32))
            if len(group) > count and len(found):
                others.append((found[-1], own))
        return Estimates(
            np.concatenate(likely),
            np.concatenate(deviations),
            np.concatenate(numbers),
            tuple(others),
        )


class _Encoder:
    """Encodes the vectors of a group, block by block."""

    def __init__(self, distances: NDArray[np.float64], dimensions: int) -> None:
        even = _even(dimensions)
        self._scale = math.sqrt(float(np.square(distances).mean()) / even)
        self._quantizer = _quantizer(even)
        self._codes: list[NDArray[np.uint8]] = []
        self._products: list[NDArray[np.float64]] = []

    def add(self, turned: Floats) -> None:
        """Encode some more vectors."""
        turned = turned / np.float32(self._scale)
        codes = self._quantizer.sa_encode(turned)
        points = self._quantizer.sa_decode(codes)
        self._codes.append(codes)
        pairs = ((turned, turned), (points, turned), (points, points))
        products = [np.einsum("ij,ij->i", *pair, dtype=np.float64) for pair in pairs]
        self._products.append(np.stack(products))

    def group(self, members: NDArray[np.int32]) -> tuple[CodeGroup, NDArray[np.float64]]:
        """Return the group, and the error of each of its vectors."""
        own, mixed, coded = np.concatenate(self._products, axis=1)
        # Code points are shorter than their vectors; this is the mean ratio.
        longer = float(own.sum() / mixed.sum())
        squares = own - 2 * longer * mixed + longer * longer * coded
        errors = np.sqrt(np.maximum(squares, 0.0)) * self._scale
        usual = float(np.quantile(errors, _USUAL))
        codes = np.concatenate(self._codes).ravel()
        return CodeGroup(members, codes, self._scale * longer, usual), errors


def _grouped(distances: NDArray[np.float64]) -> Numbers:
    """Return the number of the group of each vector; -1 for those that have no code.

    Nearer vectors lose little with the scale of a further group. They are in it if they are few.
    """
    with np.errstate(divide="ignore"):
        steps = np.log(distances / np.median(distances[distances > 0])) / math.log(WIDTH)
    steps = np.maximum(np.round(steps), -1000)
    array, counts = np.unique(steps, return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:_MOST_GROUPS]
    kept = np.sort(array[largest[counts[largest] >= _FEWEST]])
    chosen = np.searchsorted(kept, steps)
    return np.where(chosen < len(kept), chosen, -1)


def _even(dimensions: int) -> int:
    return dimensions + dimensions % 2


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
