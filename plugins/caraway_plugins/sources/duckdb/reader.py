"""Runs statements over DuckDB files, each of which is attached only while it is read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.protocols.remote import RemoteChange, RemoteInsert, TableChange, TableMerge
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.database_rows import DatabaseRows
from caraway_plugins.sources.duckdb import attached
from caraway_plugins.sources.duckdb.attached import AttachedFile
from caraway_plugins.sources.duckdb.settings import SETTINGS
from caraway_plugins.sources.endless_times import has_endless

_BATCH_ROWS = 64 * 1024


def connect(path: str) -> duckdb.DuckDBPyConnection:
    """Open a file to read from it. An idle connection would keep others from writing.

    Raises:
        duckdb.Error: it cannot be opened.
    """
    connection = duckdb.connect(
        path, read_only=True, config={**SETTINGS, "enable_external_access": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class DuckdbReader:
    """Reads tables of any number of files."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "DuckdbRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return DuckdbRows(table, sql, schema)

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows; it starts when it is run."""
        from caraway_plugins.sources.duckdb import writer

        return writer.DuckdbInsert(table, columns)

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE; it starts when it is run."""
        from caraway_plugins.sources.duckdb import writer

        return writer.DuckdbChange(table, change)

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows; it starts when it is run."""
        from caraway_plugins.sources.duckdb import merger

        return merger.DuckdbMerge(table, columns, merge)

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows; it starts when it is run."""
        from caraway_plugins.sources.duckdb import creator

        return creator.DuckdbCreation(definition, columns)

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table; it starts when it is run."""
        from caraway_plugins.sources.duckdb import creator

        return creator.DuckdbDrop(table)


class DuckdbRows(DatabaseRows):
    """The rows of a statement, read in batches."""

    failures = (duckdb.Error, pa.ArrowException, OSError)
    stop_again_s = 0.1
    _file: AttachedFile | None = None

    def _begin(self) -> Iterator[Any]:
        self._file = attached.taken(self._table.login["path"])
        self._connection = self._file.cursor()
        self._connection.execute(self._sql)
        return iter(self._connection.to_arrow_reader(_BATCH_ROWS))

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            with suppress(duckdb.Error):
                connection.interrupt()

    def _drop(self) -> None:
        if self._file is not None:
            self._file.leave(self._connection)
        self._file = self._connection = None

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if has_endless(values):
            raise ValueError("infinity")
        return values if values.type == type_ else pc.cast(values, type_)

    def _error(self, exc: Exception) -> QueryError:
        if isinstance(exc, duckdb.ConversionException | duckdb.OutOfRangeException):
            return database_rows.overflow(self._table)
        if isinstance(exc, duckdb.IOException):
            reason = "its file is away, or another process writes to it"
        elif isinstance(exc, duckdb.CatalogException | duckdb.BinderException):
            reason = "it is not what it was when it was loaded"
        elif isinstance(exc, duckdb.OutOfMemoryException):
            reason = "DuckDB needs more than 1 GB for it"
        else:
            reason = "DuckDB failed"
        return ExecutionError(f"{self._table.title} cannot be read: {reason}; run the query again")
