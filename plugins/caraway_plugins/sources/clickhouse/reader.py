"""Runs statements in ClickHouse, over connections that are kept."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.clickhouse import connecting
from caraway_plugins.sources.clickhouse.connecting import ClickhouseConnection
from caraway_plugins.sources.database_rows import PooledRows
from caraway_plugins.sources.idle_connections import IdleConnections


class ClickhouseRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = connecting.FAILURES
    stop_again_s = 1.0

    def _connect(self) -> Any:
        return ClickhouseConnection(self._table.login)

    def _run(self) -> Iterator[Any]:
        return iter(self._connection.begin(self._sql))

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            connection.kill()

    def _finish(self) -> None:
        self._connection.end()
        super()._finish()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.kill()
            connection.close()

    def _is_broken(self, exc: Exception) -> bool:
        return connecting.is_away(exc)

    def _error(self, exc: Exception) -> QueryError:
        if connecting.is_overflow(exc):
            return database_rows.overflow(self._table)
        if connecting.is_refused(exc):
            reason = "the server refuses the login or the rights of its user"
        elif connecting.is_away(exc):
            reason = "the connection failed"
        elif connecting.is_absent(exc):
            reason = "it is not what it was when it was loaded"
        else:
            reason = connecting.reason(exc)
        return ExecutionError(
            f"{self._table.title} cannot be read: {reason}; check the database, then run the "
            "query again"
        )

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if pa.types.is_timestamp(type_) and values.type == pa.uint32():  # A DateTime.
            values = values.cast(pa.int64()).cast(pa.timestamp("s", "UTC"))
        if pa.types.is_date(type_) and values.type == pa.uint16():
            values = values.cast(pa.int32()).cast(pa.date32())
        if values.type == pa.string():
            values.validate(full=True)  # A String may hold any bytes.
        return values.cast(type_)


class ClickhouseReader:
    """Reads tables of any number of servers, and keeps some idle connections."""

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._pool = IdleConnections(ClickhouseConnection.close, clock)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> ClickhouseRows:
        """Return the rows of a statement; it starts when the first rows are read."""
        return ClickhouseRows(self._pool, table, sql, schema)
