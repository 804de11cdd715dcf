"""Writes to tables of DuckDB files, each statement in one transaction."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from caraway_plugins.sources import driver_messages
from caraway_plugins.sources.database_writes import (
    DatabaseChange,
    DatabaseInsert,
    DatabaseWrite,
    Reason,
)
from caraway_plugins.sources.duckdb import attached, beside
from caraway_plugins.sources.duckdb.attached import FileStatement

_ROWS = "rows of a statement"


class DuckdbWrite(FileStatement, DatabaseWrite):
    """A statement that writes to a table of a DuckDB file."""

    failures = (duckdb.Error, OSError)

    def _begin(self) -> None:
        self._attach(is_writing=True).execute("BEGIN")

    def _commit(self) -> None:
        self._connection.execute("COMMIT")

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    @property
    def _target(self) -> str:
        return ".".join(map(quoted, self._table.relation))

    def _reason(self, exc: Exception) -> Reason:
        if isinstance(exc, duckdb.ConstraintException):
            return Reason(str(exc).splitlines()[0], is_of_values=True)
        if driver_messages.is_of_nan(str(exc)):
            return Reason(driver_messages.NAN_COMPARED, is_of_values=True)
        if isinstance(exc, duckdb.ConversionException | duckdb.OutOfRangeException):
            return Reason("a value does not fit its column", is_of_values=True)
        if isinstance(exc, duckdb.IOException) or (
            isinstance(exc, duckdb.Error) and attached.is_busy(exc)
        ):
            return Reason("its file is away, or others read or write it; try again")
        if isinstance(exc, duckdb.CatalogException) and "already exists" in str(exc):
            return Reason("a table or view with this name is there", is_of_values=True)
        if isinstance(exc, duckdb.CatalogException | duckdb.BinderException):
            return Reason("it is a view, or not what it was when it was loaded")
        if not Path(beside.beside(self._table.login["path"], beside.LOG)).parent.is_dir():
            return Reason("its folder has a `?` in its name, or is away; DuckDB finds no log there")
        if isinstance(exc, duckdb.TransactionException):
            return Reason("another statement changed it at the same time; try again")
        return Reason("DuckDB failed")


class DuckdbInsert(DuckdbWrite, DatabaseInsert):
    """An INSERT of rows that DuckDB reads as it needs them."""

    takes_lists = True

    def _inserted(self, rows: Iterator[pa.RecordBatch]) -> int:
        names = ", ".join(map(quoted, self._columns.names))
        count = 0
        for batch in rows:
            if batch.num_rows:
                self._connection.register(_ROWS, pa.Table.from_batches([batch]))
                self._connection.execute(
                    f"INSERT INTO {self._relation} ({names}) SELECT * FROM {quoted(_ROWS)}"
                )
                self._connection.unregister(_ROWS)
            count += batch.num_rows
        return count


class DuckdbChange(DuckdbWrite, DatabaseChange):
    """An UPDATE or DELETE, whose constants DuckDB reads as a table of one row."""

    def _changed(self) -> int:
        row = self._values()
        if row.num_columns:
            self._connection.register(_ROWS, pa.Table.from_batches([row]))
        assigned = []
        for each in self._change.assigned:
            column = quoted(each.column)
            value = each.sql or f"(SELECT {column} FROM {quoted(_ROWS)})"
            assigned.append(f"{column} = {value}")
        found = self._connection.execute(self._sql(self._relation, assigned)).fetchone()
        return int(found[0])


def quoted(name: str) -> str:
    """Return a name as it is written in statements."""
    return '"' + name.replace('"', '""') + '"'
