"""Scores lists of numbers against the vector of a query."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caraway_search import vector_scores
from caraway_search.vector_scores import METRICS, Scores

Numbers = npt.NDArray[Any]


def scores(vectors: pa.ListArray, query: pa.BinaryArray, metric: pa.StringArray) -> pa.Array:
    """Score a vector of each row; NULL where it is NULL, of another length, or has no direction."""
    if not len(vectors):
        return pa.nulls(0, pa.float64())
    return _nulls_for_nan(_scores(vectors, query[0], metric[0]))


def best_scores(vectors: pa.ListArray, query: pa.BinaryArray, metric: pa.StringArray) -> pa.Array:
    """Score each row by the best of its vectors; NULL where none can be scored."""
    best, _ = _best(vectors, query, metric)
    return _nulls_for_nan(best)


def best_chunks(vectors: pa.ListArray, query: pa.BinaryArray, metric: pa.StringArray) -> pa.Array:
    """Return the place of the best vector of each row, from 0; NULL where none can be scored."""
    best, places = _best(vectors, query, metric)
    return pa.array(places, pa.int64(), mask=np.isnan(best))


def _best(
    vectors: pa.ListArray, query: pa.BinaryArray, metric: pa.StringArray
) -> tuple[Scores, Numbers]:
    count = len(vectors)
    best, places = np.full(count, np.nan), np.zeros(count, np.int64)
    if not count:
        return best, places
    inner = _scores(vectors.flatten(), query[0], metric[0])
    lengths = _lengths(vectors)
    ends = np.cumsum(lengths)
    row_of = np.repeat(np.arange(count), lengths)
    # Best first within each row, then by place; NaN is last.
    order = np.lexsort((np.arange(len(inner)), -inner, row_of))
    filled = lengths > 0
    first = order[(ends - lengths)[filled]]
    best[filled] = inner[first]
    places[filled] = first - (ends - lengths)[filled]
    return best, places


def _scores(vectors: pa.ListArray, query: pa.Scalar, metric: pa.Scalar) -> Scores:
    packed, near = query.as_py(), metric.as_py()
    if not packed or len(packed) % 4:
        raise ValueError("the vector of a search is bytes of 32-bit floats")
    if near not in METRICS:
        raise ValueError(f"the metric of a search is one of {', '.join(METRICS)}")
    wanted = np.frombuffer(packed, np.float32)
    scores = np.full(len(vectors), np.nan)
    fits = _lengths(vectors) == len(wanted)
    if fits.any():
        # Only whole vectors are left, so the flat values are rows of one length.
        found = vectors.filter(pa.array(fits)) if not fits.all() else vectors
        values = found.flatten().to_numpy(zero_copy_only=False)
        rows = values.reshape(-1, len(wanted))
        scores[fits] = vector_scores.of_rows(rows, wanted, near)
    return scores


def _lengths(vectors: pa.ListArray) -> Numbers:
    """Return the length of each list; 0 for NULL."""
    lengths = vectors.value_lengths().fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _nulls_for_nan(scores: Scores) -> pa.Array:
    return pa.array(scores, pa.float64(), from_pandas=True)
