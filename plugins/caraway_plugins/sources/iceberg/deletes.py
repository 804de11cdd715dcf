"""Rows that a table has deleted: by their positions in a file, or by the values that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = _PATH, _POSITION = "file_path", "pos"
"""The columns of a file of positions."""


def positions(table: pa.Table, location: str) -> np.ndarray:
    """Return the positions of a file's deleted rows, from the rows of a file of positions."""
    of_file = table.filter(pc.equal(table.column(_PATH), location))
    return np.asarray(of_file.column(_POSITION).combine_chunks())


def kept_by_position(first: int, count: int, deleted: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return which of `count` rows from a position on are kept; None: all of them."""
    mask = None
    for found in deleted:
        inside = found[(found >= first) & (found < first + count)]
        if len(inside):
            mask = np.ones(count, bool) if mask is None else mask
            mask[inside - first] = False
    return mask


class DeletedValues:
    """The values of rows that are deleted, wherever they are. NULL is a value like others."""

    def __init__(self, columns: Mapping[int, pa.ChunkedArray]) -> None:
        self.ids = tuple(columns)
        self._sets: list[pa.Array] = []
        self._codes: list[pa.Array] = []
        codes: pa.Array | None = None
        for id_ in self.ids:
            column = columns[id_].combine_chunks()
            self._sets.append(pc.unique(column))
            found = pc.index_in(column, self._sets[-1]).cast(pa.int64())
            codes = found if codes is None else _paired(codes, found, len(self._sets[-1]))
            self._codes.append(pc.unique(codes))
            codes = pc.index_in(codes, self._codes[-1]).cast(pa.int64())

    def kept(self, columns: Mapping[int, pa.Array]) -> np.ndarray:
        """Return which rows are none of the deleted ones, by their columns."""
        codes: pa.Array | None = None
        for id_, values, known in zip(self.ids, self._sets, self._codes, strict=True):
            found = pc.index_in(columns[id_], values).cast(pa.int64())
            codes = found if codes is None else _paired(codes, found, len(values))
            # A code is a place in the values of deleted rows: it stays small for many columns.
            codes = _found(codes, known)
        assert codes is not None
        return np.asarray(codes.is_null())


def _paired(codes: pa.Array, others: pa.Array, count: int) -> pa.Array:
    """Return codes of pairs; NULL where either is NULL, as it is in no deleted row."""
    return pc.add(pc.multiply(codes, count), others)


def _found(codes: pa.Array, known: pa.Array) -> pa.Array:
    return pc.index_in(codes, known, skip_nulls=True).cast(pa.int64())


def both(masks: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return the rows that all masks keep; None: all of them."""
    given = [each for each in masks if each is not None]
    return reduce(np.logical_and, given) if given else None
