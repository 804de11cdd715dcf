"""Scores vectors against a query exactly: each row alone, so that batches never change a score."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Metric = Literal["cosine", "dot", "l2"]
Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]
METRICS: tuple[Metric, ...] = ("cosine", "dot", "l2")


def of_rows(vectors: Vectors, query: Vectors, metric: Metric) -> Scores:
    """Return the score of each row, higher is nearer; NaN for vectors that have no direction.

    Zero vectors and those with NaN or infinity get NaN. With `l2` a score is the negative distance.
    """
    rows = np.ascontiguousarray(vectors, np.float64)
    array = np.asarray(query, np.float64)
    with np.errstate(all="ignore"):
        lengths = np.sqrt((rows * rows).sum(axis=1))
        if metric == "l2":
            apart = rows - array
            scores: Scores = -np.sqrt((apart * apart).sum(axis=1))
        else:
            scores = (rows * array).sum(axis=1)
            if metric == "cosine":
                scores /= lengths * np.sqrt((array * array).sum())
        scores[~(np.isfinite(lengths) & (lengths > 0))] = np.nan
        scores[~np.isfinite(scores)] = np.nan
    return scores
