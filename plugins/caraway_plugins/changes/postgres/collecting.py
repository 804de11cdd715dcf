"""Collects row changes of one table, and converts them to `Changes`."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres import pgoutput, positions, values
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.pgoutput import UNCHANGED, Row

Key = tuple[str | None, ...]
Fetch = Callable[[Sequence[Key]], Mapping[Key, tuple[str | None, ...]]]
"""Reads the current rows with these keys, in the column order of the table."""

_PER_VALUE_BYTES = 60


class Collector:
    """Row changes of one table in log order, over any number of transactions."""

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
        """Use the column order of the relation for the rows that follow.

        Raises:
            DatasetError: its columns differ from those of the dataset.
        """
        at = {column.name: index for index, column in enumerate(relation.columns)}
        for column in self._table.columns:
            index = at.get(column.name)
            if index is None:
                raise self._changed(f"has no column '{column.name}' ")
            relation_column = relation.columns[index]
            if (relation_column.type_oid, relation_column.modifier) != (
                column.type_oid,
                column.modifier,
            ):
                raise self._changed(f"has a different type for column '{column.name}'")
        if self._table.takes_all and len(at) > len(self._table.columns):
            new = next(name for name in at if name not in self._table.schema.names)
            raise self._changed(f"has the new column '{new}'")
        self._picks = tuple(at[column.name] for column in self._table.columns)

    def begin_transaction(self, commit_lsn: int, taken: int = 0) -> None:
        """Begin a transaction; skip its first `taken` changes, which were applied before."""
        self._commit_lsn, self._number, self._taken = commit_lsn, 0, taken

    @property
    def number(self) -> int:
        """The number of changes seen in the transaction."""
        return self._number

    def insert(self, row: Row) -> None:
        """Add an inserted row."""
        self.received += 1
        self._add(Op.UPSERT, self._picked(row))

    def update(self, old: Row | None, row: Row) -> None:
        """Add an update; a changed key deletes the old row first."""
        self.received += 1
        new = self._picked(row)
        if old is not None:
            before = self._picked(old)
            if self._table.has_whole_old_rows:
                new = tuple(b if n is UNCHANGED else n for n, b in zip(new, before, strict=True))
            else:
                # Only the key is in the old row; an unchanged large value of the new row is taken
                # from there.
                for index in self._keys:
                    if new[index] is UNCHANGED:
                        new = (*new[:index], before[index], *new[index + 1 :])
            if self._key(before) != self._key(new):
                self._add(Op.DELETE, before)
        self._add(Op.UPSERT, new)

    def delete(self, old: Row) -> None:
        """Add a deletion of the row."""
        self.received += 1
        self._add(Op.DELETE, self._picked(old))

    def truncate(self) -> None:
        """Add a truncation of the table."""
        self.received += 1
        self._add(Op.TRUNCATE, self._nothing)

    def take_changes(self, fetch: Fetch) -> Changes:
        """Return the collected changes and start again. Blocks if values must be fetched.

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
        """Fill in values that the log omits, and return the indexes of the changes to keep.

        The log omits large values that did not change, so they are read from the table. The table
        may already hold a later value, whose change follows in the log. A change whose row no
        longer exists is dropped, because its deletion follows.
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
            f"{self._table.place.title} {what}; undo that, or list the columns of the dataset "
            "under its 'columns', which reloads it",
        )


def changes(
    table: Table,
    ops: Sequence[int],
    rows: Sequence[Sequence[object]],
    offsets: Sequence[bytes],
    received: int,
) -> Changes:
    """Convert the texts of rows to changes.

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
