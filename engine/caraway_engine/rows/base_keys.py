"""Checks the keys of a base: none may be NULL, and duplicates are resolved or refused."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing
from caraway_core.tables import Keys
from caraway_engine.rows import choosing, keyed
from caraway_engine.rows.keyed import Key, KeyIndex
from caraway_engine.rows.pieces import RowRange


def check_types(table: TableName, schema: pa.Schema, keys: Keys | None) -> None:
    """Check that the key and index columns exist and have types that can be indexed.

    Raises:
        ExecutionError: a column is missing or cannot be indexed.
    """
    if keys is None:
        return
    for name in {*keys.primary, *(name for each in keys.indexes for name in each.columns)}:
        if name not in schema.names:
            raise ExecutionError(
                f"dataset '{table}' has no column '{name}', which its `primary_key` or `indexes` "
                f"name; columns are: {', '.join(schema.names)}"
            )
        try:
            hashing.family(schema.field(name).type)
        except ValueError as exc:
            raise ExecutionError(
                f"dataset '{table}': column '{name}' of type {schema.field(name).type} cannot be a "
                "key or indexed; choose another column"
            ) from exc


def check_not_null(table: TableName, columns: Sequence[str], pieces: Sequence[RowRange]) -> None:
    """Check that no key column is NULL.

    Raises:
        ExecutionError: a key column is NULL.
    """
    for name in columns:
        if any(piece.batch.column(name).null_count for piece in pieces):
            raise ExecutionError(
                f"dataset '{table}': column '{name}' of its primary key contains NULL; exclude "
                "such rows with `refresh_sql`, or choose another primary key"
            )


def losers(
    table: TableName, keys: Keys, index: KeyIndex, pieces: Sequence[RowRange]
) -> Sequence[int]:
    """Return the rows that are superseded by others with the same primary key.

    Raises:
        ExecutionError: duplicates are refused.
    """
    found: list[int] = []
    for numbers in _same(index, keys.primary, pieces):
        if keys.twice == "refuse" or (
            keys.twice == "same" and len({str(row(pieces, n).to_pylist()) for n in numbers}) > 1
        ):
            twice = "with other values " if keys.twice == "same" else ""
            raise ExecutionError(
                f"dataset '{table}': primary key {_worded(pieces, keys.primary, numbers[0])} is "
                f"duplicated {twice}in the loaded rows; choose a unique key, or "
                "set `on_conflict` to choose which row to keep"
            )
        found += numbers[:-1] if keys.twice == "last" else numbers[1:]
    return found


def check_unique(
    table: TableName, columns: Sequence[str], index: KeyIndex, pieces: Sequence[RowRange]
) -> None:
    """Check that no two rows have the same values.

    Raises:
        ExecutionError: two rows have the same values.
    """
    for numbers in _same(index, columns, pieces):
        raise ExecutionError(
            f"dataset '{table}': {_worded(pieces, columns, numbers[0])} is duplicated in the "
            "loaded rows, but its index is `unique`; make it `enabled`, or index other columns"
        )


def keys_at(
    pieces: Sequence[RowRange], columns: Sequence[str], numbers: Sequence[int]
) -> Mapping[int, Key]:
    """Return the keys of rows by row number; the numbers are sorted."""
    found: dict[int, Key] = {}
    starts = [piece.first for piece in pieces]
    for at, group in groupby(numbers, lambda number: bisect_right(starts, number) - 1):
        piece, chosen = pieces[at], list(group)
        rows = pa.array([number - piece.first for number in chosen], pa.int64())
        held = [choosing.take(piece.batch.column(name), rows) for name in columns]
        found.update(zip(chosen, keyed.keys(held), strict=True))
    return found


def holding(pieces: Sequence[RowRange], number: int) -> RowRange:
    """Return the piece that contains a row."""
    return pieces[bisect_right(pieces, number, key=lambda piece: piece.first) - 1]


def row(pieces: Sequence[RowRange], number: int) -> pa.RecordBatch:
    """Return a row as a batch."""
    piece = holding(pieces, number)
    return piece.batch.slice(number - piece.first, 1)


def _same(
    index: KeyIndex, columns: Sequence[str], pieces: Sequence[RowRange]
) -> Iterator[list[int]]:
    for numbers in index.repeated():
        by_key: dict[Key, list[int]] = {}
        there = keys_at(pieces, columns, sorted(numbers))
        for number in sorted(numbers):
            by_key.setdefault(there[number], []).append(number)
        yield from (each for each in by_key.values() if len(each) > 1)


def _worded(pieces: Sequence[RowRange], columns: Sequence[str], number: int) -> str:
    found = row(pieces, number)
    return keyed.text(columns, [found.column(name)[0] for name in columns])
