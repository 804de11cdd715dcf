"""Runs statements in Flight SQL servers, over connections that are kept."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import schemas
from caraway_plugins.sources.flightsql import connecting
from caraway_plugins.sources.flightsql.connecting import FlightSqlConnection

_MOST_IDLE = 8
_LONGEST_IDLE_S = 300.0
_CANCEL_AGAIN_S = 0.2
_FAILED = (connecting.Error, pa.ArrowException, OSError)
_Key = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Idle:
    key: _Key
    connection: FlightSqlConnection
    since_s: float


class FlightSqlReader:
    """Reads tables of any number of servers, and keeps some idle connections."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.connection.close()

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> FlightSqlRows:
        """Return the rows of a statement; it starts when the first rows are read."""
        return FlightSqlRows(self, table, sql, schema)

    def take(self, table: RemoteTable) -> FlightSqlConnection | None:
        """Return an idle connection, or None."""
        key = _key(table)
        with self._lock:
            found = next((each for each in reversed(self._idle) if each.key == key), None)
            if found is not None:
                self._idle.remove(found)
        return None if found is None else found.connection

    def give_back(self, table: RemoteTable, connection: FlightSqlConnection) -> None:
        """Keep a connection for later; the longest idle ones are closed."""
        now_s = self._clock()
        with self._lock:
            self._idle.append(_Idle(_key(table), connection, now_s))
            kept = [each for each in self._idle if each.since_s > now_s - _LONGEST_IDLE_S]
            kept = kept[-_MOST_IDLE:]
            unused = [each for each in self._idle if each not in kept]
            self._idle = kept
        for each in unused:
            each.connection.close()


class FlightSqlRows:
    """The rows of a statement, read in batches."""

    def __init__(
        self, reader: FlightSqlReader, table: RemoteTable, sql: str, schema: pa.Schema
    ) -> None:
        self._reader, self._table, self._sql, self._schema = reader, table, sql, schema
        self._connection: FlightSqlConnection | None = None
        self._batches: pa.RecordBatchReader | None = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield _typed(self._table, batch, self._schema)

    def close(self) -> None:
        """Stop the statement at the server if it is running."""
        # The cancellation is repeated, because the statement may start after the first one.
        while not self._reading.acquire(timeout=_CANCEL_AGAIN_S):
            if (connection := self._connection) is not None:
                connection.cancel()
        try:
            self._drop()
            self._is_closed = True
        finally:
            self._reading.release()

    def _next(self) -> pa.RecordBatch | None:
        with self._reading:
            if self._is_closed:
                return None
            try:
                batches = self._batches or self._begin()
                return batches.read_next_batch()
            except StopIteration:
                self._finish()
                return None
            except _FAILED as exc:
                self._drop()
                self._is_closed = True
                raise _error(self._table, exc) from exc

    def _begin(self) -> pa.RecordBatchReader:
        """Run the statement; if an idle connection has ended, use another one."""
        while (kept := self._reader.take(self._table)) is not None:
            self._connection = kept
            try:
                self._batches = kept.begin(self._sql)
                return self._batches
            except _FAILED as exc:
                if not (connecting.is_away(exc) or connecting.is_refused(exc)):
                    raise
                self._drop()
        self._connection = FlightSqlConnection(self._table.login)
        self._batches = self._connection.begin(self._sql)
        return self._batches

    def _finish(self) -> None:
        """Keep the connection of a statement that was read to its end."""
        self._is_closed = True
        connection, self._connection = self._connection, None
        self._close_batches()
        if connection is not None:
            connection.end()
            self._reader.give_back(self._table, connection)

    def _drop(self) -> None:
        """Close the connection; the server ends a statement that it runs on it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cancel()
        self._close_batches()
        if connection is not None:
            connection.close()

    def _close_batches(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            with suppress(*_FAILED):
                batches.close()


def _key(table: RemoteTable) -> _Key:
    return frozenset(table.login.items())


def _typed(table: RemoteTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the requested types.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    columns = []
    for values, field in zip(batch.columns, schema, strict=True):
        try:
            plain = schemas.plain(values.type)
            columns.append(values.cast(plain).cast(field.type))
        except pa.ArrowException as exc:
            raise InvalidQueryError(
                f"{table.title}: a value of column '{field.name}' is not a {field.type}; declare "
                "the column under 'columns' with a type that fits, for example text"
            ) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _error(table: RemoteTable, exc: Exception) -> QueryError:
    """Convert an error of the driver; neither the statement nor the login is shown."""
    if connecting.is_refused(exc):
        reason = "the server refuses the login"
    elif connecting.is_away(exc):
        reason = "the connection failed"
    else:
        reason = connecting.message(exc, table.login)
    return ExecutionError(
        f"{table.title} cannot be read: {reason}; check the server, then run the query again"
    )
