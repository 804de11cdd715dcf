"""Runs statements over drivers of ODBC, over connections that are kept."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.database_rows import PooledRows
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.idle_connections import IdleConnections
from caraway_plugins.sources.odbc import connecting
from caraway_plugins.sources.odbc.connecting import OdbcConnection


class OdbcRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = connecting.FAILURES
    _was_closed = False

    def close(self) -> None:
        """End the statement with its next batch: the client has no way to stop it before."""
        self._was_closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    def _connect(self) -> Any:
        return OdbcConnection(self._table.login)

    def _run(self) -> Iterator[Any]:
        return self._until_closed(self._connection.begin(self._sql))

    def _until_closed(self, batches: Any) -> Iterator[Any]:
        for batch in batches:
            if self._was_closed:
                return
            yield batch

    def _stop(self) -> None:
        pass

    def _finish(self) -> None:
        if self._was_closed:
            self._drop()
        else:
            super()._finish()

    def _drop(self) -> None:
        self._connection = None  # It is closed when nothing refers to it.

    def _is_broken(self, exc: Exception) -> bool:
        return connecting.is_away(exc)

    def _error(self, exc: Exception) -> QueryError:
        if database_rows.is_overflow(str(exc)):
            return database_rows.overflow(self._table)
        if connecting.is_refused(exc):
            reason = "the server refuses the login"
        elif connecting.is_away(exc):
            reason = "the connection failed, or the time of params.odbc_query_timeout is over"
        else:
            reason = connecting.message(exc, self._table.login)
        return ExecutionError(
            f"{self._table.title} cannot be read: {reason}; check the server, then run the query "
            "again"
        )

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_decimal(type_) and pa.types.is_string(values.type):
            return decimals(values, type_)
        return values.cast(type_)


class OdbcReader:
    """Reads tables of any number of databases, and keeps some idle connections."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._pool = IdleConnections(lambda connection: None, clock)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> OdbcRows:
        """Return the rows of a statement; it starts when the first rows are read."""
        return OdbcRows(self._pool, table, sql, schema)
