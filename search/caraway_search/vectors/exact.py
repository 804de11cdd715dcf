"""The vector of a search, and exact scores of many vectors in little memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caraway_search import vector_scores
from caraway_search.errors import InvalidSearchError
from caraway_search.vector_scores import Metric

_BLOCK = 512
"""Vectors that are computed together; their products fit in a core's cache."""


@dataclass(frozen=True)
class QueryVector:
    """The vector that a search is for, and how near others are to it."""

    values: NDArray[np.float32]
    metric: Metric = "cosine"

    @classmethod
    def from_values(cls, values: Sequence[float] | NDArray[Any], metric: Metric = "cosine") -> Self:
        """Check a vector.

        Raises:
            InvalidSearchError: it is empty, of zeros or not finite.
        """
        with np.errstate(all="ignore"):
            query = cls(np.asarray(values, np.float32), metric)
        if query.values.ndim != 1 or query.norm == 0 or not math.isfinite(query.norm):
            raise InvalidSearchError("the vector to search for is empty, of zeros or not finite")
        return query

    @cached_property
    def norm(self) -> float:
        """The length of the vector."""
        wide = self.values.astype(np.float64)
        return math.sqrt(float((wide * wide).sum()))


def scores(vectors: NDArray[np.floating[Any]], query: QueryVector) -> NDArray[np.float64]:
    """The scores of vectors of the length of the query's, as `vector_scores` has them."""
    result = np.empty(len(vectors))
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        result[start : start + _BLOCK] = vector_scores.of_rows(block, query.values, query.metric)
    return result
