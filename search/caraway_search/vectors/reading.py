"""Reads the vectors of an Arrow column: one for each row, or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caraway_search.errors import InvalidSearchError
from caraway_search.vectors.stacked import StackedVectors

Matrix = NDArray[np.floating[Any]]
_BLOCK = 4096


@dataclass(frozen=True)
class ColumnVectors:
    """The vectors of a column. Vector `n` belongs to row `rows[n]`; None: to row `n`.

    Rows of `matrix` that are not `usable` have any contents. `parts` are the places of the vectors
    in their rows, where rows may have several. `left_out` counts the vectors that cannot be
    searched: of zeros, not finite or of another length; those that are NULL are not counted.
    """

    matrix: StackedVectors
    norms: NDArray[np.float64]
    usable: NDArray[np.bool_]
    row_count: int
    left_out: int
    rows: NDArray[np.int64] | None = None
    parts: NDArray[np.int64] | None = None

    @classmethod
    def read(cls, column: Any, dimensions: int) -> Self:
        """Read lists of floats, or lists of such lists; those of 32 bits are not copied.

        Raises:
            InvalidSearchError: the type of the column is another one.
        """
        if isinstance(column, pa.ChunkedArray):
            if column.num_chunks > 1:
                return cls._joined([cls.read(each, dimensions) for each in column.chunks])
            column = column.combine_chunks()
        if not _is_list(column.type):
            raise InvalidSearchError(f"vectors are lists of floats, not {column.type}")
        if not _is_list(column.type.value_type):
            return cls._of_single(column, dimensions)
        column = _variable(column)
        single = cls._of_single(column.flatten(), dimensions)
        counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        counts = counts.astype(np.int64)
        rows = np.repeat(np.arange(len(column)), counts)
        first = np.cumsum(counts) - counts
        parts = np.arange(len(rows)) - np.repeat(first, counts)
        return cls(
            single.matrix, single.norms, single.usable, len(column), single.left_out, rows, parts
        )

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self:
        """The vectors of several columns, one below the other."""
        rows = places = None
        if all(each.rows is not None for each in parts):
            firsts = np.cumsum([0, *(each.row_count for each in parts[:-1])])
            rows = np.concatenate([p.rows + first for p, first in zip(parts, firsts, strict=True)])
            places = np.concatenate([each.parts for each in parts])
        return cls(
            StackedVectors.from_stacks([each.matrix for each in parts]),
            np.concatenate([each.norms for each in parts]),
            np.concatenate([each.usable for each in parts]),
            sum(each.row_count for each in parts),
            sum(each.left_out for each in parts),
            rows,
            places,
        )

    @classmethod
    def _of_single(cls, column: Any, dimensions: int) -> Self:
        present = np.asarray(column.is_valid())
        if pa.types.is_fixed_size_list(column.type) and column.type.list_size == dimensions:
            values = column.values.slice(column.offset * dimensions, len(column) * dimensions)
            fits = present
            matrix = _matrix(values, dimensions)
        else:
            column = _variable(column)
            lengths = pc.fill_null(pc.list_value_length(column), -1)
            fits = lengths.to_numpy(zero_copy_only=False) == dimensions
            # Without NULL and wrong lengths the vectors lie one after the other.
            kept = column if fits.all() else column.filter(pa.array(fits))
            matrix = _matrix(kept.flatten(), dimensions)
            if kept is not column:
                every = np.zeros((len(column), dimensions), matrix.dtype)
                every[fits] = matrix
                matrix = every
        norms = _norms(matrix)
        usable = fits & np.isfinite(norms) & (norms > 0)
        left_out = int(np.count_nonzero(present & ~usable))
        return cls(StackedVectors((matrix,)), norms, usable, len(matrix), left_out)


def _is_list(type_: object) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    )


def _variable(column: Any) -> object:
    """The column as lists of any length, whose `flatten` has the values of no NULL."""
    if pa.types.is_fixed_size_list(column.type):
        return column.cast(pa.large_list(column.type.value_type))
    return column


def _matrix(values: Any, dimensions: int) -> Matrix:
    """Numbers as 32-bit floats, in which statements compare vectors; others are copied."""
    if not pa.types.is_floating(values.type):
        raise InvalidSearchError(f"vectors are lists of floats, not of {values.type}")
    if values.null_count:
        values = values.fill_null(float("nan"))
    numbers: Matrix = values.to_numpy(zero_copy_only=False).reshape(-1, dimensions)
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32, copy=False)


def _norms(matrix: Matrix) -> NDArray[np.float64]:
    norms = np.empty(len(matrix))
    with np.errstate(all="ignore"):
        for start in range(0, len(matrix), _BLOCK):
            block = matrix[start : start + _BLOCK].astype(np.float64)
            norms[start : start + _BLOCK] = np.sqrt((block * block).sum(axis=1))
    return norms
