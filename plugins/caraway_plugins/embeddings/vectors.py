"""Rows of numbers as Arrow vectors."""

import numpy as np
import pyarrow as pa

from caraway_core.errors import ModelError, ModelInputError


def to_arrow(rows: np.ndarray) -> pa.FixedSizeListArray:
    """Return the rows of a matrix as vectors of 32-bit floats."""
    flat = np.ascontiguousarray(rows, dtype=np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), rows.shape[1])


def to_matrix(model: str, rows: object, count: int) -> np.ndarray:
    """Check the vectors that a provider sent.

    Raises:
        ModelError: there are too few, or they are not of one length, or not of finite numbers.
    """
    try:
        matrix = np.array(rows, dtype=np.float32)
    except (OverflowError, TypeError, ValueError):
        matrix = np.empty((0, 0), dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != count or not matrix.shape[1]:
        raise ModelError(
            f"embedding model '{model}': the provider did not return {count} vectors of one length"
        )
    if not np.isfinite(matrix).all():
        raise ModelError(f"embedding model '{model}': the provider returned a vector with NaN")
    return matrix


def normalised(rows: np.ndarray) -> np.ndarray:
    """Return the rows at length 1; a row of zeros stays."""
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    unit: np.ndarray = rows / np.maximum(lengths, np.float32(1e-12))
    return unit


def check_dimensions(model: str, wanted: int | None, known: tuple[int, ...]) -> int:
    """Return the length of the vectors to make.

    Raises:
        ModelInputError: the model has no vectors of the wanted length.
    """
    if wanted is None:
        return known[-1]
    if wanted not in known:
        raise ModelInputError(
            f"embedding model '{model}' has no vectors of {wanted} dimensions; "
            f"it has: {', '.join(map(str, known))}"
        )
    return wanted


def to_bytes(vectors: pa.FixedSizeListArray) -> list[bytes]:
    """Return the numbers of each vector as bytes."""
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    rows = flat.reshape(len(vectors), vectors.type.list_size)
    return [row.tobytes() for row in rows]


def from_bytes(rows: list[bytes], dimensions: int) -> pa.FixedSizeListArray:
    """Return vectors of which `to_bytes` made bytes."""
    flat = np.frombuffer(b"".join(rows), dtype=np.float32)
    return to_arrow(flat.reshape(len(rows), dimensions))
