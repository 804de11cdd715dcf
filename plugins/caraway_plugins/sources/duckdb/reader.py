"""Runs statements over DuckDB files, each of which is attached only while it is read."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.protocols.remote import RemoteInsert
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.duckdb import attached
from caraway_plugins.sources.duckdb.attached import AttachedFile
from caraway_plugins.sources.duckdb.settings import SETTINGS

_BATCH_ROWS = 64 * 1024
_STOP_AGAIN_S = 0.1


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


class DuckdbRows:
    """The rows of a statement, read in batches."""

    def __init__(self, table: RemoteTable, sql: str, schema: pa.Schema) -> None:
        self._table, self._sql, self._schema = table, sql, schema
        self._file: AttachedFile | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._batches: Any = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield _typed(self._table, batch, self._schema)

    def close(self) -> None:
        """Stop the statement if it is running, and close its connection."""
        while not self._reading.acquire(timeout=_STOP_AGAIN_S):
            connection = self._connection
            if connection is not None:
                with suppress(duckdb.Error):
                    connection.interrupt()
        try:
            self._end()
        finally:
            self._reading.release()

    def _next(self) -> pa.RecordBatch | None:
        with self._reading:
            if self._is_closed:
                return None
            try:
                if self._batches is None:
                    self._file = attached.taken(self._table.login["path"])
                    self._connection = self._file.cursor()
                    self._connection.execute(self._sql)
                    self._batches = self._connection.to_arrow_reader(_BATCH_ROWS)
                return self._batches.read_next_batch()
            except StopIteration:
                self._end()
                return None
            except (duckdb.Error, pa.ArrowException, OSError) as exc:
                self._end()
                raise _error(self._table, exc) from exc

    def _end(self) -> None:
        self._is_closed = True
        self._batches = None
        if self._file is not None:
            self._file.leave(self._connection)
        self._file = self._connection = None


def _typed(table: RemoteTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the columns to the requested types.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        try:
            if _has_endless(array):
                raise ValueError("infinity")
            columns.append(array if array.type == field.type else pc.cast(array, field.type))
        except (pa.ArrowException, ValueError) as exc:
            raise InvalidQueryError(
                f"{table.title}: a value of column '{field.name}' is not a {field.type}; declare "
                "the column under 'columns' with a type that fits, for example text"
            ) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _has_endless(array: pa.Array) -> bool:
    """Return whether a date or time is infinite, which DuckDB sends as the largest numbers."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        numbers, most = array.view(pa.int64()), 2**63 - 1
    elif pa.types.is_date32(type_):
        numbers, most = array.view(pa.int32()), 2**31 - 1
    else:
        return False
    ends = pc.min_max(numbers)
    return bool(ends["max"].as_py() == most or ends["min"].as_py() in (-most, -most - 1))


def _error(table: RemoteTable, exc: Exception) -> QueryError:
    """Convert an error; paths of this machine are not shown."""
    if isinstance(exc, duckdb.ConversionException | duckdb.OutOfRangeException):
        return InvalidQueryError(
            f"overflow: {table.title}: a number is too large for its type; cast what is computed "
            "to DECIMAL(38, 0) or DOUBLE first"
        )
    if isinstance(exc, duckdb.IOException):
        reason = "its file is away, or another process writes to it"
    elif isinstance(exc, duckdb.CatalogException | duckdb.BinderException):
        reason = "it is not what it was when it was loaded"
    elif isinstance(exc, duckdb.OutOfMemoryException):
        reason = "DuckDB needs more than 1 GB for it"
    else:
        reason = "DuckDB failed"
    return ExecutionError(f"{table.title} cannot be read: {reason}; run the query again")
