"""Inserts rows into SQLite files, in one transaction."""

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts
from caraway_plugins.sources.sqlite import connecting

_OF_VALUES = {
    "UNIQUE constraint": "a row with this key is there",
    "NOT NULL constraint": "a column without a value needs one",
    "CHECK constraint": "a value does not meet a condition of the table",
    "FOREIGN KEY constraint": "a key of another table is missing",
    "cannot store": "a value does not fit its column",
    "datatype mismatch": "a value does not fit its column",
}
types = pa.types


class SqliteInsert:
    """An INSERT whose rows the driver binds."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        self._table, self._columns = table, columns
        self._running = threading.Lock()
        self._is_closed = False

    def run(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.run`."""
        written_texts.check(self._table, self._columns)
        with self._running:
            try:
                # Without a commit, closing it leaves the file as it was.
                with connecting.connect_to_write(self._table.login["path"]) as connection:
                    count = self._inserted(connection, rows)
                    if self._is_closed:
                        raise ExecutionError("the statement was stopped; no row was inserted")
                    connection.commit()
                    return count
            except (dbapi.Error, pa.ArrowException, OSError) as exc:
                raise _error(self._table, str(exc)) from exc

    def close(self) -> None:
        """See `RemoteInsert.close`. SQLite waits for no one for long."""
        self._is_closed = True

    def _inserted(self, connection: Any, rows: Iterator[pa.RecordBatch]) -> int:
        names = ", ".join(map(_quoted, self._columns.names))
        marks = ", ".join("?" * len(self._columns))
        sql = f"INSERT INTO main.{_quoted(self._table.relation[0])} ({names}) VALUES ({marks})"
        count = 0
        with connection.cursor() as cursor:
            for batch in rows:
                written_texts.check_numbers(self._table, batch, has_infinity=True)
                if batch.num_rows:
                    cursor.executemany(sql, _bound(batch))
                count += batch.num_rows
        return count


def _bound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with the types that the driver binds, in the forms in which they are read."""
    columns = [_form(each) for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])


def _form(array: pa.Array) -> pa.Array:
    type_ = array.type
    if types.is_integer(type_) or types.is_boolean(type_):
        return pc.cast(array, pa.int64())
    if types.is_floating(type_):
        return pc.cast(array, pa.float64())
    if types.is_binary(type_):
        return array
    return written_texts.of(array, lambda value: value.hex(), "+00:00")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _error(table: RemoteTable, said: str) -> QueryError:
    """Convert an error; paths of this machine are not shown."""
    for kind, what in _OF_VALUES.items():
        if kind in said:
            return written_texts.refused(table, what)
    if "locked" in said or "busy" in said:
        reason = "another process writes to its file; try again"
    elif "no such" in said or "has no column" in said:
        reason = "it is not what it was when it was loaded"
    elif "readonly" in said or "unable to open" in said or "failed to open" in said:
        reason = "its file is away, or may not be written"
    elif "cannot modify" in said:
        reason = "it is a view"
    elif "full" in said:
        reason = "the disk is full"
    else:
        reason = "SQLite failed"
    return ExecutionError(f"INSERT into {table.title} failed: {reason}; no row was inserted")
