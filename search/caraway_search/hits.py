"""Rows that a search of one segment found."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of a segment, ascending, and their scores. Higher is better.

    `parts` are the places of the best parts in rows of several, as in texts that are cut in chunks.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    parts: NDArray[np.int64] | None = None
