"""Collects what happens to the rows of one table, and makes changes of it."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres import pgoutput, positions, values
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.pgoutput import UNCHANGED, Row

Key = tuple[str | None, ...]
Fetch = Callable[[Sequence[Key]], Mapping[Key, tuple[str | None, ...]]]
"""Reads the present rows with these keys, in the order of the table's columns."""

_PER_VALUE_BYTES = 60


class Collector:
    """Rows of one table in the order of their changes, of one transaction after another."""

    def __init__(self, table: Table, source: bytes) -> None:
        self._table = table
        self._source = source
        self._keys = [table.schema.get_field_index(name) for name in table.key]
        self._picks: tuple[int, ...] = tuple(range(len(table.columns)))
        self._nothing: Row = (None,) * len(table.columns)
        self._commit_lsn = 0
        self._number = 0
        self._taken = 0
        self._ops: list[int] = []
        self._rows: list[Row] = []
        self._offsets: list[bytes] = []
        self.received = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._ops)

    def follow(self, relation: pgoutput.Relation) -> None:
        """Take rows as the relation has them from here on.

        Raises:
            DatasetError: its columns are not those of the dataset.
        """
        at = {column.name: index for index, column in enumerate(relation.columns)}
        for column in self._table.columns:
            index = at.get(column.name)
            if index is None:
                raise self._changed(f"has no column '{column.name}' any more")
            found = relation.columns[index]
            if (found.type_oid, found.modifier) != (column.type_oid, column.modifier):
                raise self._changed(f"has another type of column '{column.name}'")
        if self._table.takes_all and len(at) > len(self._table.columns):
            new = next(name for name in at if name not in self._table.schema.names)
            raise self._changed(f"has the new column '{new}'")
        self._picks = tuple(at[column.name] for column in self._table.columns)

    def begin(self, commit_lsn: int, taken: int = 0) -> None:
        """Begin a transaction, of which some changes are taken already."""
        self._commit_lsn, self._number, self._taken = commit_lsn, 0, taken

    @property
    def number(self) -> int:
        """How many changes of its transaction were seen."""
        return self._number

    def insert(self, row: Row) -> None:
        self.received += 1
        self._add(Op.UPSERT, self._picked(row))

    def update(self, old: Row | None, row: Row) -> None:
        self.received += 1
        new = self._picked(row)
        if old is not None:
            before = self._picked(old)
            if self._table.has_whole_old_rows:
                new = tuple(b if n is UNCHANGED else n for n, b in zip(new, before, strict=True))
            else:
                # The key is all that is there; a large value in it stands in the old one.
                for index in self._keys:
                    if new[index] is UNCHANGED:
                        new = (*new[:index], before[index], *new[index + 1 :])
            if self._key(before) != self._key(new):
                self._add(Op.DELETE, before)
        self._add(Op.UPSERT, new)

    def delete(self, old: Row) -> None:
        self.received += 1
        self._add(Op.DELETE, self._picked(old))

    def truncate(self) -> None:
        self.received += 1
        self._add(Op.TRUNCATE, self._nothing)

    def take(self, fetch: Fetch) -> Changes:
        """Return what was collected, and begin anew. Blocks if values must be fetched.

        Raises:
            DatasetError: a value does not fit its column.
        """
        ops, rows, offsets = self._ops, self._rows, self._offsets
        received, self.received, self.size_bytes = self.received, 0, 0
        self._ops, self._rows, self._offsets = [], [], []
        kept = self._complete(ops, rows, fetch)
        if len(kept) < len(ops):
            ops, rows = [ops[i] for i in kept], [rows[i] for i in kept]
            offsets = [offsets[i] for i in kept]
        return changes(self._table, ops, rows, offsets, received)

    def _complete(self, ops: list[int], rows: list[Row], fetch: Fetch) -> Sequence[int]:
        """Put in what the log left out; tell which changes remain.

        A value that did not change is read from the table. That may be a later one, whose own
        change is still to come. If the row is gone by now, so is the point of this change: what
        took it away follows.
        """
        lacking = [i for i, row in enumerate(rows) if UNCHANGED in row]
        if not lacking:
            return range(len(ops))
        present = fetch(list({self._key(rows[i]) for i in lacking}))
        gone = set()
        for i in lacking:
            now = present.get(self._key(rows[i]))
            if now is None:
                gone.add(i)
                continue
            pairs = zip(rows[i], now, strict=True)
            rows[i] = tuple(there if here is UNCHANGED else here for here, there in pairs)
        return [i for i in range(len(ops)) if i not in gone]

    def _picked(self, row: Row) -> Row:
        return tuple([row[index] for index in self._picks])

    def _key(self, row: Row) -> Key:
        return tuple(None if row[i] is UNCHANGED else row[i] for i in self._keys)

    def _add(self, op: Op, row: Row) -> None:
        self._number += 1
        if self._number <= self._taken:
            return
        self._ops.append(op)
        self._rows.append(row)
        self._offsets.append(positions.offset(self._source, self._commit_lsn, self._number))
        self.size_bytes += sum(_PER_VALUE_BYTES + len(v) for v in row if isinstance(v, str))

    def _changed(self, what: str) -> DatasetError:
        return DatasetError(
            "schema",
            f"{self._table.place.title} {what}; undo that, or write the columns that the dataset "
            "is to have under its 'columns': then it is loaded anew",
        )


def changes(
    table: Table,
    ops: Sequence[int],
    rows: Sequence[Sequence[object]],
    offsets: Sequence[bytes],
    received: int,
) -> Changes:
    """Make changes of the texts of rows.

    Raises:
        DatasetError: a value does not fit its column.
    """
    texts = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    try:
        columns = [
            values.column(column_texts, column.field)
            for column_texts, column in zip(texts, table.columns, strict=True)
        ]
    except DatasetError as exc:
        raise DatasetError("schema", f"{table.place.title}: {exc.message}") from exc
    columns += [pa.array(ops, pa.int8()), pa.array(offsets, pa.binary())]
    return Changes(pa.Table.from_arrays(columns, schema=log_schema(table.schema)), received)
