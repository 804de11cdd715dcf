"""Scores columns of vectors against the vector of a query."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caraway_search.vector_scores import METRICS
from caraway_search.vectors import exact
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.reading import ColumnVectors

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


def scores(
    vectors: pa.ListArray, query: pa.BinaryViewArray, metric: pa.StringViewArray
) -> pa.Array:
    """Score the vector of each row, or the best of several; NULL where none can be scored.

    A vector cannot be scored if it is NULL, of another length, of zeros or not finite.
    """
    best, _ = _best(vectors, query, metric)
    return pa.array(best, pa.float64(), from_pandas=True)


def best_chunks(
    vectors: pa.ListArray, query: pa.BinaryViewArray, metric: pa.StringViewArray
) -> pa.Array:
    """Return the place of the best vector of each row, from 0; NULL where none can be scored."""
    best, places = _best(vectors, query, metric)
    return pa.array(places, pa.int64(), mask=np.isnan(best))


def _best(
    vectors: pa.ListArray, query: pa.BinaryViewArray, metric: pa.StringViewArray
) -> tuple[Floats, Numbers]:
    """Return the best score of each row, NaN where there is none, and its place in the row."""
    best, places = np.full(len(vectors), np.nan), np.zeros(len(vectors), np.int64)
    if not len(vectors):
        return best, places
    vector = _query(query[0].as_py(), metric[0].as_py())
    read = ColumnVectors.read(vectors, len(vector.values))
    chosen = np.flatnonzero(read.usable)
    # Most often every vector can be scored, and the matrix need not be copied.
    is_whole = len(chosen) == len(read.matrix) and len(read.matrix.matrices) == 1
    array = exact.scores(
        read.matrix.matrices[0] if is_whole else read.matrix.copy_vectors(chosen), vector
    )
    array, chosen = array[np.isfinite(array)], chosen[np.isfinite(array)]
    if read.rows is None or read.parts is None:
        best[chosen] = array
        return best, places
    # The last to be written to a row is its best score, and of equal ones the first.
    order = np.lexsort((-chosen, array))
    rows = read.rows[chosen[order]]
    best[rows] = array[order]
    places[rows] = read.parts[chosen[order]]
    return best, places


def _query(packed: Any, metric: object) -> QueryVector:
    if not packed or len(packed) % 4:
        raise ValueError("the vector of a search is bytes of 32-bit floats")
    if metric not in METRICS:
        raise ValueError(f"the metric of a search is one of {', '.join(METRICS)}")
    return QueryVector.from_values(np.frombuffer(packed, np.float32), metric)
