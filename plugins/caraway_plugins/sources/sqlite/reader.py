"""Runs statements over SQLite files, each with a connection of its own."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.database_rows import TOO_LARGE, DatabaseRows
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.sqlite import connecting, forms
from caraway_plugins.sources.writing_reader import DatabaseWriters, WritingReader

_BATCH_ROWS = 16 * 1024


class SqliteReader(WritingReader):
    """Reads tables of any number of files."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "SqliteRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return SqliteRows(table, _typed_by_first_row(sql, schema), schema)

    def _writers(self) -> DatabaseWriters:
        from caraway_plugins.sources.sqlite.creator import SqliteCreation, SqliteDrop, SqliteMerge
        from caraway_plugins.sources.sqlite.writer import SqliteChange, SqliteInsert

        return DatabaseWriters(SqliteInsert, SqliteChange, SqliteMerge, SqliteCreation, SqliteDrop)


class SqliteRows(DatabaseRows):
    """The rows of a statement, read in batches.

    SQLite's driver has no way to stop a statement: once closed, the read ends with its next batch.
    """

    failures = (dbapi.Error, pa.ArrowException, OSError)
    advice = "run the query again"
    _cursor: Any = None

    def close(self) -> None:
        """Close the connection; a batch that is being read is the last one."""
        self._is_closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    def _begin(self) -> Iterator[object]:
        self._connection = connecting.connect(self._table.login["path"])
        connecting.run(self._connection, self._table.login["view"])
        self._cursor = self._connection.cursor()
        rows = {"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)}
        self._cursor.adbc_statement.set_options(**rows)
        self._cursor.execute(self._sql)
        batches = iter(self._cursor.fetch_record_batch())
        first = next(batches).slice(1)
        return (each for found in ((first,), batches) for each in found if each.num_rows)

    def _stop(self) -> None:
        """Do nothing: the driver has no way to stop a statement."""

    def _drop(self) -> None:
        for each in (self._cursor, self._connection):
            if each is not None:
                with suppress(dbapi.Error):
                    each.close()
        self._cursor = self._connection = None

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        values = forms.checked_values(values, type_)
        if values.type == type_:
            return values
        if pa.types.is_time(type_):  # Arrow reads them only with a day.
            moments = pc.binary_join_element_wise("1970-01-01", values, " ")
            return pc.cast(pc.cast(moments, pa.timestamp(type_.unit)), type_)
        if pa.types.is_decimal(type_):
            return decimals(values, type_)
        return pc.cast(values, type_)

    def _error(self, exc: Exception) -> QueryError:
        if (name := forms.unfit(str(exc), self._schema.names)) is None:
            return super()._error(exc)
        types = {each.name: each.type for each in self._table.columns}
        return database_rows.unfit(self._table, name, types.get(name, "value of its type"))

    def _overflow(self, exc: Exception) -> str | None:
        return TOO_LARGE if "integer overflow" in str(exc) else None

    def _reason(self, exc: Exception) -> str:
        message = connecting.said(exc)
        if connecting.LOCKED in message:
            return "another process writes to its file"
        if "no such" in message:
            return "it is not what it was when it was loaded"
        if any(each in message for each in ("failed to open", "unable to open", "readonly")):
            return "its file is away"
        return "SQLite failed"


def _typed_by_first_row(sql: str, schema: pa.Schema) -> str:
    """Add a first row, because the driver takes the types of columns from their first values.

    The limit keeps SQLite from taking a statement with an order or a limit apart, and with that its
    order. It costs a third of the time of reading all rows.
    """
    first = ", ".join(forms.filler(each) for each in schema.types)
    is_simple = not any(each in sql for each in ("ORDER BY", "LIMIT", "OFFSET"))
    rows = sql if is_simple else f"SELECT * FROM (SELECT * FROM ({sql}) LIMIT -1)"
    return f"SELECT {first} UNION ALL {rows}"
