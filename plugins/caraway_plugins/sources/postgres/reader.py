"""Runs statements in PostgreSQL and gives their rows as Arrow, over connections that are kept."""

import atexit
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.endless_times import has_endless
from caraway_plugins.sources.idle_connections import IdleConnections
from caraway_plugins.sources.pooled_rows import PooledReader, PooledRows
from caraway_plugins.sources.postgres.databases import Databases
from caraway_plugins.sources.writing_reader import DatabaseWriters, WritingReader

_BATCH_BYTES = 4 * 1024 * 1024
_OVERFLOW = "22003"
_TOO_LARGE = "out of range"
"""Errors that occur while rows stream have this text, but no SQLSTATE."""
_BROKEN = ("08", "57P")
"""SQLSTATE classes for a lost connection or a server that shuts down."""
_OPTIONS = {"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
_WATCHES_CLIENT = """
SELECT set_config(name, '2s', false) FROM pg_settings
WHERE name = 'client_connection_check_interval'
"""
"""Makes the server stop a statement when its client disappears, for example is killed."""


class TableConnections(Protocol):
    """Opens connections to the databases of tables; the reader implements it."""

    def connect(self, table: RemoteTable) -> Any:
        """Open a connection to the database of a table."""
        ...


class PostgresRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = (dbapi.Error, pa.ArrowException, OSError)

    def __init__(
        self,
        pool: IdleConnections,
        connections: TableConnections,
        table: RemoteTable,
        sql: str,
        schema: pa.Schema,
    ) -> None:
        super().__init__(pool, table, sql, schema)
        self._connections = connections
        self._cursor: Any = None

    @staticmethod
    def close_idle(connection: object) -> None:
        _close(connection)

    def _connect(self) -> object:
        self._connection = self._connections.connect(self._table)
        with self._connection.cursor() as cursor:
            cursor.execute(_WATCHES_CLIENT)
            cursor.fetchall()
        return self._connection

    def _run(self) -> Iterator[object]:
        self._cursor = self._connection.cursor(adbc_stmt_kwargs=_OPTIONS)
        self._cursor.execute(self._sql)
        return iter(self._cursor.fetch_record_batch())

    def _stop(self) -> None:
        # The driver does not allow closing while another thread uses it.
        if (connection := self._connection) is not None:
            with suppress(dbapi.Error):
                connection.adbc_cancel()

    def _finish(self) -> None:
        self._cursor.close()
        self._cursor = None
        super()._finish()

    def _drop(self) -> None:
        if self._cursor is not None:
            _close(self._cursor)
        if self._connection is not None:
            _close(self._connection)
        self._cursor = self._connection = None

    def _is_broken(self, exc: Exception) -> bool:
        state = getattr(exc, "sqlstate", None) or ""
        if state:
            return bool(state.startswith(_BROKEN))
        return "ERROR:" not in str(exc)

    def _overflow(self, exc: Exception) -> str | None:
        message = self._reason(exc)
        is_overflow = getattr(exc, "sqlstate", None) == _OVERFLOW or _TOO_LARGE in message
        return message if is_overflow else None

    def _reason(self, exc: Exception) -> str:
        return _said(exc)  # Only the server's own message is shown to users.

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if has_endless(values):
            raise ValueError("infinity")
        if pa.types.is_decimal(type_) and pa.types.is_string(values.type):
            return decimals(values, type_)
        return values if values.type == type_ else pc.cast(values, type_)


class PostgresReader(PooledReader, WritingReader):
    """Reads tables of any number of servers, and reuses idle connections."""

    rows = PostgresRows

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        super().__init__(clock)
        self._clock = clock
        self._databases = Databases()
        # The driver cannot close connections while the interpreter shuts down.
        atexit.register(self.close)

    def close(self) -> None:
        """Close the idle connections."""
        super().close()
        self._databases.close_unused(math.inf)

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> PostgresRows:
        """Return the rows of a statement; it starts when the first rows are read."""
        return PostgresRows(self._pool, self, table, sql, schema)

    def _writers(self) -> DatabaseWriters:
        from caraway_plugins.sources.postgres.creator import (
            PostgresCreation,
            PostgresDrop,
            PostgresMerge,
        )
        from caraway_plugins.sources.postgres.writer import PostgresChange, PostgresInsert

        return DatabaseWriters(
            PostgresInsert, PostgresChange, PostgresMerge, PostgresCreation, PostgresDrop
        )

    def connect(self, table: RemoteTable) -> Any:
        """Open a connection to the database of a table."""
        now_s = self._clock()
        self._databases.close_unused(now_s)
        return self._databases.connect(table.login, now_s)


def _close(each: Any) -> None:
    with suppress(dbapi.Error):
        each.close()


def _said(exc: BaseException) -> str:
    """Return the server's message without the driver's prefix, the statement and the host."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    found = next((line for line in lines if "ERROR:" in line or "FATAL:" in line), "")
    for word in ("ERROR:", "FATAL:"):
        if word in found:
            return found.partition(word)[2].strip()
    return "the connection failed"
