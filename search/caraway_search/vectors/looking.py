"""The state of one search in one segment: which vectors have been scored, and which may follow."""

import math
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caraway_search.errors import InvalidSearchError
from caraway_search.hits import Hits
from caraway_search.selecting import best
from caraway_search.vectors import exact
from caraway_search.vectors.codes import Estimates
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.segment import VectorSegment

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Matrix = NDArray[np.floating[Any]]

FEW_VECTORS = 2048
"""Up to this number, vectors are compared exactly at once."""
SMALL_SHARE = 0.05
"""Up to this share of a segment is compared exactly: gathering it costs less than estimates."""
LARGE_SHARE = 0.25
"""When more than this share would need exact scores, all vectors get them."""
_GATHERED_SHARE = 0.3
_MORE = 4
_MANY_SCORES = 64
"""From this number on, vectors are first compared in lower precision."""
_LARGEST_NORM = 1e15
"""Products of longer vectors may not fit in 32 bits."""
_LEAST_PRODUCT = 1e-30
"""Products of shorter vectors vanish in 32 bits."""
_NO_ESTIMATES = Estimates(
    np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64), ()
)


class Look:
    """A search in one segment. Vectors are named by their numbers in it."""

    def __init__(self, segment: VectorSegment, query: QueryVector, allowed: Flags) -> None:
        self.segment = segment
        self._query = query
        self._allowed = allowed
        self._allowed_count = int(np.count_nonzero(allowed))
        self._estimates = _NO_ESTIMATES
        self._scored = np.zeros(len(allowed), np.bool_)
        self._numbers: list[Numbers] = []
        self._scores: list[Floats] = []

    @classmethod
    def at(cls, segment: VectorSegment, query: QueryVector, mask: Flags | None) -> Self:
        """Begin a search; `mask` marks the rows that may be found."""
        if (wanted := segment.spec.dimensions) != len(query.values):
            raise InvalidSearchError(
                f"vectors of {wanted} numbers cannot be compared with one of {len(query.values)}"
            )
        vectors = segment.vectors
        if mask is None:
            return cls(segment, query, vectors.usable)
        wanted_vectors = mask if vectors.rows is None else mask[vectors.rows]
        return cls(segment, query, vectors.usable & wanted_vectors)

    @property
    def has_estimates(self) -> bool:
        """True if estimates are worth their time here."""
        least = max(FEW_VECTORS, SMALL_SHARE * len(self._allowed))
        return self.segment.codes is not None and self._allowed_count > least

    def estimate(self, count: int) -> None:
        """Get the best estimates, about `count` of allowed vectors."""
        codes = self.segment.codes
        assert codes is not None
        wanted = min(math.ceil(count * len(codes) / self._allowed_count), len(codes))
        estimates = codes.estimates(self._estimate_query, wanted)
        numbers = self.segment.coded[estimates.numbers]
        allowed = self._allowed[numbers]
        self._estimates = Estimates(
            estimates.likely[allowed],
            estimates.deviations[allowed],
            numbers[allowed],
            estimates.others,
        )
        self._asked = count
        if len(codes.far):
            far = self.segment.coded[codes.far]
            self._score(far[self._allowed[far]])

    @property
    def likely(self) -> NDArray[np.float32]:
        """The estimates of vectors that are allowed: their likely values."""
        return self._estimates.likely

    def apart(self, scores: Floats, bar: float) -> Floats:
        """Return the distances of scores from a bar, in standard deviations of the estimates."""
        largest = float(self._estimates.deviations.max(initial=0.0))
        if not math.isfinite(bar) or largest == 0:
            return np.zeros(len(scores))
        above: Floats = (self._estimate_of(scores) - self._estimate_of(bar)) / largest
        return above

    def score_likely(self, least: float) -> None:
        """Score the vectors whose likely values are at least this high."""
        self._score(self._estimates.numbers[self._estimates.likely >= least])

    def score_candidates(self, bar: float, limit: int, z: float) -> None:
        """Score the vectors that may reach a score, if estimates err by up to `z` deviations."""
        least = self._estimate_of(bar)
        while self._estimates.bound(z) >= least:
            if self._asked * _MORE > LARGE_SHARE * self._allowed_count:
                self.score_all(limit)
                return
            self.estimate(self._asked * _MORE)
        self._score(self._estimates.numbers[self._estimates.above(z) >= least], bar)

    def score_all(self, limit: int) -> None:
        """Score all vectors that are among the best of the segment, beyond doubt."""
        self._estimates = _NO_ESTIMATES
        self._score(self._nearest(limit))

    def row_scores(self) -> Hits:
        """The rows that have scored vectors, with their best vectors."""
        numbers = np.concatenate([np.zeros(0, np.int64), *self._numbers])
        scores = np.concatenate([np.zeros(0), *self._scores])
        vectors = self.segment.vectors
        if vectors.rows is None or vectors.parts is None:
            return Hits(numbers, scores)
        rows = vectors.rows[numbers]
        order = np.lexsort((numbers, -scores, rows))
        rows, numbers = rows[order], numbers[order]
        is_best = np.ones(len(rows), np.bool_)
        is_best[1:] = rows[1:] != rows[:-1]
        return Hits(rows[is_best], scores[order][is_best], vectors.parts[numbers[is_best]])

    def hits(self, bar: float) -> Hits:
        """The rows whose scores reach a bar, in their order."""
        hits = self.row_scores()
        kept = np.flatnonzero(hits.scores >= bar)
        kept = kept[np.argsort(hits.rows[kept])]
        parts = None if hits.parts is None else hits.parts[kept]
        return Hits(hits.rows[kept], hits.scores[kept], parts)

    def _score(self, numbers: Numbers, bar: float = -math.inf) -> None:
        # In the order in which they are in memory, from where they are taken sooner.
        new = np.sort(numbers[~self._scored[numbers]])
        if not len(new):
            return
        self._scored[new] = True
        vectors = self.segment.vectors.matrix.copy_vectors(new)
        if len(new) > _MANY_SCORES and math.isfinite(bar):
            # Exact scores take several times as long as products of lower precision.
            is_near = self._may_reach(bar, new, vectors)
            new, vectors = new[is_near], vectors[is_near]
        scores = exact.scores(vectors, self._query)
        valid = ~np.isnan(scores)  # products of huge numbers overflow
        self._numbers.append(new[valid])
        self._scores.append(scores[valid])

    @cached_property
    def _estimate_query(self) -> NDArray[np.float32]:
        """The vector whose dot products with coded ones are in the order of scores."""
        values = self._query.values
        if self._query.metric == "cosine":
            values = values / self._query.norm
        elif self._query.metric == "l2":
            values = np.append(values, 1.0)
        return values.astype(np.float32)

    def _estimate_of(self, score: Any) -> Any:
        """The value that estimates and `_compared` have for a score, or for each of several."""
        if self._query.metric != "l2" or not np.all(np.isfinite(score)):
            return score
        return (self._query.norm**2 - score**2) / 2

    def _nearest(self, limit: int) -> Numbers:
        """The vectors that may be among the best rows, by products of lower precision."""
        numbers = np.flatnonzero(self._allowed)
        norms = self.segment.vectors.norms[numbers]
        largest = float(norms.max(initial=0.0))
        if len(numbers) <= limit or not self._fits(norms):
            return numbers
        rough, margin = self._rough(numbers, norms, largest)
        rows = self.segment.vectors.rows
        if rows is None:
            leaders = rough
        else:
            leaders = np.full(self.segment.vectors.row_count, -np.inf)
            np.maximum.at(leaders, rows[numbers], rough)
        kept = best(leaders, limit)
        near: Numbers = numbers[rough >= leaders[kept].min(initial=np.inf) - 2 * margin]
        return near

    def _may_reach(self, bar: float, numbers: Numbers, vectors: Matrix) -> Flags:
        """Which vectors have a score that is not below a bar, beyond doubt."""
        norms = self.segment.vectors.norms[numbers]
        largest = float(norms.max(initial=0.0))
        if not self._fits(norms):
            return np.ones(len(numbers), np.bool_)
        with np.errstate(all="ignore"):
            dots = vectors @ self._query.values.astype(vectors.dtype, copy=False)
        rough, margin = self._compared(dots, norms, largest)
        # NaN, as of products that overflow, is not known to be lower.
        low: Flags = rough < self._estimate_of(bar) - margin
        return ~low

    def _fits(self, norms: Floats) -> bool:
        """True if 32 bits distinguish products with vectors of these lengths."""
        largest = float(norms.max(initial=0.0))
        # Cosines have the length of each vector in their errors, others that of the longest.
        least = float(norms.min(initial=math.inf)) if self._query.metric == "cosine" else largest
        is_small = max(largest, self._query.norm) <= _LARGEST_NORM
        return is_small and least * self._query.norm >= _LEAST_PRODUCT

    def _rough(self, numbers: Numbers, norms: Floats, largest: float) -> tuple[Floats, float]:
        """Values in the order of scores, and how wrong one may be."""
        matrix = self.segment.vectors.matrix
        query = self._query.values.astype(matrix.dtype, copy=False)
        with np.errstate(all="ignore"):
            if len(numbers) < _GATHERED_SHARE * len(matrix):
                dots = matrix.copy_vectors(numbers) @ query
            else:
                dots = matrix.dots(query)[numbers]
        return self._compared(dots, norms, largest)

    def _compared(self, dots: Matrix, norms: Floats, largest: float) -> tuple[Floats, float]:
        """Values in the order of scores from dot products, and how wrong one may be."""
        query = self._query.values
        epsilon = (len(query) + 8) * float(np.finfo(dots.dtype).eps)
        wide = dots.astype(np.float64)
        product = self._query.norm * largest
        if self._query.metric == "cosine":
            return wide / (norms * self._query.norm), epsilon
        if self._query.metric == "dot":
            return wide, epsilon * product
        return wide - norms * norms / 2, epsilon * (product + largest * largest)
