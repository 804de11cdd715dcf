"""Writes to tables of SQLite files, each statement in one transaction."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_plugins.sources import written_texts
from caraway_plugins.sources.database_writes import (
    DatabaseChange,
    DatabaseInsert,
    DatabaseWrite,
    Reason,
)
from caraway_plugins.sources.sqlite import connecting

_OF_VALUES = {
    "UNIQUE constraint": "a row with this key is there",
    "NOT NULL constraint": "a column without a value needs one",
    "CHECK constraint": "a value does not meet a condition of the table",
    "FOREIGN KEY constraint": "a key of another table is missing",
    "cannot store": "a value does not fit its column",
    "datatype mismatch": "a value does not fit its column",
    "integer overflow": "a number is too large for its type",
    "already exists": "a table or view with this name is there",
    "use DROP VIEW": "it is a view",
}
_WHY = {
    connecting.LOCKED: "another process writes to its file; try again",
    "no such": "it is not what it was when it was loaded",
    "has no column": "it is not what it was when it was loaded",
    "readonly": "its file is away, or may not be written",
    "unable to open": "its file is away, or may not be written",
    "failed to open": "its file is away, or may not be written",
    "cannot modify": "it is a view",
    "disk is full": "the disk is full",
}
_SHAPE = "SELECT type, wr FROM pragma_table_list(?) WHERE schema = 'main'"
_NAMES = "SELECT name FROM pragma_table_xinfo(?, 'main')"
_ROWIDS = ("rowid", "oid", "_rowid_")
"""The names of the number of a row, each of which a column may have."""
KEY = '"number of a row in caraway"'
types = pa.types


class SqliteWrite(DatabaseWrite):
    """A statement that writes to a table of a SQLite file."""

    failures = (dbapi.Error, pa.ArrowException, OSError)

    def close(self) -> None:
        """Have the transaction end without a commit. SQLite waits for no one for long."""
        self._is_closed = True

    def _begin(self) -> None:
        self._connection = connecting.connect_to_write(self._table.login["path"])

    def _commit(self) -> None:
        self._connection.commit()

    def _run(self, sql: str) -> None:
        connecting.run(self._connection, sql)

    @property
    def _target(self) -> str:
        return f"main.{quoted(self._table.relation[0])}"

    def _stop(self) -> None:
        """Do nothing: the driver has no way to stop a statement."""

    def _drop(self) -> None:
        # Without a commit, it leaves the file as it was.
        if self._connection is not None:
            self._connection.close()

    def _reason(self, exc: Exception) -> Reason:
        said = connecting.said(exc)
        for kind, what in _OF_VALUES.items():
            if kind in said:
                return Reason(what, is_of_values=True)
        return Reason(next((why for words, why in _WHY.items() if words in said), "SQLite failed"))

    @property
    def _name(self) -> str:
        return quoted(self._table.relation[0])

    def _shown(self) -> tuple[str, str]:
        """Make the view of the columns as they are read, with the number of each row.

        Returns:
            The name of the number in the table, and that of the view; both in SQL.

        Raises:
            InvalidQueryError: rows have no number.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(_SHAPE, self._table.relation)
            shape = cursor.fetchone()
            cursor.execute(_NAMES, self._table.relation)
            taken = {str(each).lower() for (each,) in cursor.fetchall()}
            free = next((each for each in _ROWIDS if each not in taken), None)
            if free is None or (shape is not None and tuple(shape) != ("table", 0)):
                raise self._refused(
                    "a view, or a table whose rows have no number, cannot be changed"
                )
            end = f" FROM main.{self._name}"
            view = self._table.login["view"].removesuffix(end)
            cursor.execute(f"{view}, {free} AS {KEY}{end}")
        return free, f"temp.{self._name}"


class SqliteInsert(SqliteWrite, DatabaseInsert):
    """An INSERT whose rows the driver binds."""

    def _inserted(self, rows: Iterator[pa.RecordBatch]) -> int:
        names = ", ".join(map(quoted, self._columns.names))
        marks = ", ".join("?" * len(self._columns))
        sql = f"INSERT INTO {self._relation} ({names}) VALUES ({marks})"
        count = 0
        with self._connection.cursor() as cursor:
            for batch in rows:
                written_texts.check_numbers(batch, self._refused, has_infinity=True)
                if batch.num_rows:
                    cursor.executemany(sql, _bound(batch))
                count += batch.num_rows
        return count


class SqliteChange(SqliteWrite, DatabaseChange):
    """An UPDATE or DELETE of the rows that a view shows, whose values have the types of columns.

    The view compares as reads do: its texts have no collation, and a value of another type is an
    error.
    """

    def _changed(self) -> int:
        row = self._values()
        written_texts.check(row.schema, self._refused)
        written_texts.check_numbers(row, self._refused, has_infinity=True)
        with self._connection.cursor() as cursor:
            place = f"{quoted('main')}.{self._name}"
            key, view = self._shown()
            shown = f"SELECT {KEY} FROM {view}"
            if self._change.condition:
                shown = f"{shown} WHERE {self._change.condition}"
            statement = f"DELETE FROM {place}"
            if self._change.assigned:
                statement = f"UPDATE {place} SET {', '.join(self._assigned(f'{place}.{key}'))}"
            statement = f"{statement} WHERE {key} IN ({shown})"
            if row.num_columns:
                cursor.executemany(statement, _bound(row))
            else:
                cursor.execute(statement)
            cursor.execute("SELECT changes()")
            return int(cursor.fetchone()[0])

    def _assigned(self, key: str) -> Iterator[str]:
        """Yield the assignments: constants are bound, and other values are those of the view."""
        for each in self._change.assigned:
            value = "?"
            if each.sql:
                value = f"(SELECT {each.sql} FROM temp.{self._name} WHERE {KEY} = {key})"
            yield f"{quoted(each.column)} = {value}"


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


def quoted(name: str) -> str:
    """Return a name as it is written in statements."""
    return '"' + name.replace('"', '""') + '"'
