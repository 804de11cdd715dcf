"""The best of many scores."""

import numpy as np
from numpy.typing import NDArray

_BLOCKS = 32
"""Scores are first compared in this number of rows, which leaves few to sort."""


def best(scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """The places of the `limit` highest scores and of all that equal the lowest of them, ascending.

    Ties are kept because the key that decides between them is known elsewhere.
    """
    count = len(scores)
    if limit <= 0:
        return np.zeros(0, np.int64)
    if count <= limit:
        return np.arange(count)
    width = count // _BLOCKS
    if width < limit:
        return np.flatnonzero(scores >= _highest(scores, limit))
    # A block's maximum is a score, so the highest of the maxima bound what can be among the best.
    maxima = scores[: width * _BLOCKS].reshape(_BLOCKS, width).max(axis=0)
    kept = np.flatnonzero(scores >= _highest(maxima, limit))
    return kept[scores[kept] >= _highest(scores[kept], limit)]


def _highest(scores: NDArray[np.float64], limit: int) -> float:
    # numpy is slow for the upper end of values of which most are equal.
    return float(-np.partition(-scores, limit - 1)[limit - 1])
