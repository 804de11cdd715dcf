"""Inserts rows into DuckDB files, in one transaction."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import pyarrow as pa

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts
from caraway_plugins.sources.duckdb import attached

_STOP_AGAIN_S = 0.1
_ROWS = "rows of an insert"


class DuckdbInsert:
    """An INSERT of rows that DuckDB reads as it needs them."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        self._table, self._columns = table, columns
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._running = threading.Lock()
        self._is_closed = False

    def run(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.run`."""
        with self._running:
            try:
                file = attached.taken(self._table.login["path"])
                try:
                    self._connection = file.cursor(is_writing=True)
                    return self._inserted(self._connection, rows)
                finally:
                    file.leave(self._connection)
                    self._connection = None
            except (duckdb.Error, OSError) as exc:
                raise _error(self._table, exc) from exc

    def close(self) -> None:
        """See `RemoteInsert.close`."""
        self._is_closed = True
        while not self._running.acquire(timeout=_STOP_AGAIN_S):
            connection = self._connection
            if connection is not None:
                with suppress(duckdb.Error):
                    connection.interrupt()
        self._running.release()

    def _inserted(
        self, connection: duckdb.DuckDBPyConnection, rows: Iterator[pa.RecordBatch]
    ) -> int:
        connection.execute("BEGIN")
        names = ", ".join(map(_quoted, self._columns.names))
        relation = ".".join(map(_quoted, self._table.relation))
        count = 0
        for batch in rows:
            if batch.num_rows:
                connection.register(_ROWS, pa.Table.from_batches([batch]))
                connection.execute(
                    f"INSERT INTO {relation} ({names}) SELECT * FROM {_quoted(_ROWS)}"
                )
                connection.unregister(_ROWS)
            count += batch.num_rows
        if self._is_closed:
            raise ExecutionError("the statement was stopped; no row was inserted")
        connection.execute("COMMIT")
        return count


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _error(table: RemoteTable, exc: Exception) -> QueryError:
    """Convert an error; paths of this machine are not shown."""
    if isinstance(exc, duckdb.ConstraintException):
        return written_texts.refused(table, str(exc).splitlines()[0])
    if isinstance(exc, duckdb.ConversionException | duckdb.OutOfRangeException):
        return written_texts.refused(table, "a value does not fit its column")
    if isinstance(exc, duckdb.IOException) or (
        isinstance(exc, duckdb.Error) and attached.is_busy(exc)
    ):
        reason = "its file is away, or others read or write it; try again"
    elif isinstance(exc, duckdb.CatalogException | duckdb.BinderException):
        reason = "it is a view, or not what it was when it was loaded"
    elif isinstance(exc, duckdb.TransactionException):
        reason = "another statement changed it at the same time; try again"
    else:
        reason = "DuckDB failed"
    return ExecutionError(f"INSERT into {table.title} failed: {reason}; no row was inserted")
