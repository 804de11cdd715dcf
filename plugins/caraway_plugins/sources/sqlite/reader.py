"""Runs statements over SQLite files, each with a connection of its own."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.protocols.remote import RemoteChange, RemoteInsert, TableChange, TableMerge
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.database_rows import DatabaseRows
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.sqlite import connecting, forms

_BATCH_ROWS = 16 * 1024


class SqliteReader:
    """Reads tables of any number of files."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "SqliteRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return SqliteRows(table, _typed_by_first_row(sql, schema), schema)

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows; it starts when it is run."""
        from caraway_plugins.sources.sqlite import writer

        return writer.SqliteInsert(table, columns)

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE; it starts when it is run."""
        from caraway_plugins.sources.sqlite import writer

        return writer.SqliteChange(table, change)

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows; it starts when it is run."""
        from caraway_plugins.sources.sqlite import merger

        return merger.SqliteMerge(table, columns, merge)

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows; it starts when it is run."""
        from caraway_plugins.sources.sqlite import creator

        return creator.SqliteCreation(definition, columns)

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table; it starts when it is run."""
        from caraway_plugins.sources.sqlite import creator

        return creator.SqliteDrop(table)


class SqliteRows(DatabaseRows):
    """The rows of a statement, read in batches.

    SQLite's driver has no way to stop a statement: once closed, the read ends with its next batch.
    """

    failures = (dbapi.Error, pa.ArrowException, OSError)
    _cursor: Any = None

    def close(self) -> None:
        """Close the connection; a batch that is being read is the last one."""
        self._is_closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    def _begin(self) -> Iterator[Any]:
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
        # A text that is not UTF-8 does not fit.
        values.validate(full=True)
        if values.type == type_:
            return values
        if pa.types.is_time(type_):  # Arrow reads them only with a day.
            moments = pc.binary_join_element_wise("1970-01-01", values, " ")
            return pc.cast(pc.cast(moments, pa.timestamp(type_.unit)), type_)
        if pa.types.is_decimal(type_) and pa.types.is_string(values.type):
            return decimals(values, type_)
        return pc.cast(values, type_)

    def _error(self, exc: Exception) -> QueryError:
        table, said = self._table, str(exc)
        if (name := forms.unfit(said)) is not None:
            type_ = {each.name: each.type for each in table.columns}.get(name, "value of its type")
            return database_rows.unfit(table, name, type_)
        if "integer overflow" in said:
            return database_rows.overflow(table)
        if "locked" in said or "busy" in said:
            reason = "another process writes to its file"
        elif "no such" in said:
            reason = "it is not what it was when it was loaded"
        elif "failed to open" in said or "unable to open" in said or "readonly" in said:
            reason = "its file is away"
        else:
            reason = "SQLite failed"
        return ExecutionError(f"{table.title} cannot be read: {reason}; run the query again")


def _typed_by_first_row(sql: str, schema: pa.Schema) -> str:
    """Add a first row, because the driver takes the types of columns from their first values.

    The limit keeps SQLite from taking the statement apart, and with that its order.
    """
    first = ", ".join(forms.filler(each) for each in schema.types)
    return f"SELECT {first} UNION ALL SELECT * FROM (SELECT * FROM ({sql}) LIMIT -1)"
