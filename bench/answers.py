"""Compares the results of two engines by row count, sums of numbers, and digests of the rest."""

import hashlib
import math

import pyarrow as pa
import pyarrow.compute as pc

_TOLERANCE = 1e-4
"""Engines round averages of decimals to different numbers of digits."""


def difference(one: pa.Table, other: pa.Table) -> str | None:
    """Describe how the results differ; None if they are equal. The order of rows is ignored."""
    if (one.num_rows, one.num_columns) != (other.num_rows, other.num_columns):
        return (
            f"{one.num_rows} rows of {one.num_columns} columns, "
            f"not {other.num_rows} of {other.num_columns}"
        )
    for name, left, right in zip(one.column_names, one.columns, other.columns, strict=True):
        if not _same(left, right):
            return f"column '{name}' differs"
    return None


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return _digest(left) == _digest(right)
    if _is_number(left.type) and _is_number(right.type):
        return math.isclose(_sum(left), _sum(right), rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return _digest(left) == _digest(right)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _sum(column: pa.ChunkedArray) -> float:
    return float(pc.sum(column.cast(pa.float64())).as_py() or 0.0)


def _digest(column: pa.ChunkedArray) -> str:
    texts = sorted("\0" if value is None else str(value) for value in column.to_pylist())
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
