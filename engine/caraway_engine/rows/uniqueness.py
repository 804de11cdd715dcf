"""Checks unique indexes while rows change."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_engine.rows import base_keys, keyed
from caraway_engine.rows.keyed import Key, KeyIndex
from caraway_engine.rows.pieces import RowRange


class DuplicateError(InvalidQueryError):
    """Changes would give two rows the same values in a unique index."""


def check(
    table: TableName,
    columns: Sequence[str],
    new: pa.RecordBatch,
    base: Sequence[RowRange],
    index: KeyIndex,
    dead_base: Sequence[int],
    logged: Mapping[Key, Sequence[int]],
    dead_log: Sequence[int],
) -> None:
    """Check new rows against each other, and against the existing rows that are not deleted.

    Rows with NULL in the index are never duplicates.

    Raises:
        DuplicateError: two rows have the same values.
    """
    is_whole = None
    for name in columns:
        valid = new.column(name).is_valid()
        is_whole = valid if is_whole is None else pc.and_(is_whole, valid)
    rows = new.filter(is_whole)
    if not rows.num_rows:
        return
    held = [rows.column(name) for name in columns]
    hashes, seen = keyed.hashes(held), set[Key]()
    first = index.first(hashes)
    for place, key in enumerate(keyed.keys(held)):
        is_there = key in seen or any(not dead_log[number] for number in logged.get(key, ()))
        if not is_there and first[place] >= 0:
            alive = [n for n in index.at(hashes[place].as_py()) if not dead_base[n]]
            is_there = key in base_keys.keys_at(base, columns, alive).values()
        if is_there:
            value = keyed.text(columns, [column[place] for column in held])
            raise DuplicateError(
                f"dataset '{table}': {value} would be duplicated, but its index is `unique`; "
                "these changes are not applied"
            )
        seen.add(key)
