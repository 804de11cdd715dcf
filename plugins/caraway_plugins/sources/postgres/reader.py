"""Runs statements in PostgreSQL and gives their rows as Arrow, over connections that are kept."""

import atexit
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.protocols.remote import RemoteInsert
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.postgres.databases import Databases, Login

_MOST_IDLE = 8
_LONGEST_IDLE_S = 300.0
_BATCH_BYTES = 4 * 1024 * 1024
_OVERFLOW = "22003"
_TOO_LARGE = "out of range"
"""Errors that occur while rows stream have this text, but no SQLSTATE."""
_BROKEN = ("08", "57P")
"""SQLSTATE classes for a lost connection or a server that shuts down."""
_CANCEL_AGAIN_S = 0.2
_OPTIONS = {"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
_WATCHES_CLIENT = """
SELECT set_config(name, '2s', false) FROM pg_settings
WHERE name = 'client_connection_check_interval'
"""
"""Makes the server stop a statement when its client disappears, for example is killed."""
_EPOCH_US = 946_684_800_000_000
_ENDLESS = -(2**63) + _EPOCH_US
"""The driver's result for `-infinity`; for `infinity` it is one less, as the epochs differ."""
_EPOCH_DAYS = 10_957
_ENDLESS_DAYS = -(2**31) + _EPOCH_DAYS
"""The same for dates."""


class _Idle(NamedTuple):
    connection: Any
    since_s: float


class PostgresReader:
    """Reads tables of any number of servers, and reuses idle connections."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle: dict[Login, list[_Idle]] = {}
        self._databases = Databases()
        self._lock = threading.Lock()
        # The driver cannot close connections while the interpreter shuts down.
        atexit.register(self.close)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle = [each for kept in self._idle.values() for each in kept]
            self._idle.clear()
        for each in idle:
            _close(each.connection)
        self._databases.close_unused(math.inf)

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "PostgresRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return PostgresRows(self, table, sql, schema)

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows; it starts when it is run."""
        from caraway_plugins.sources.postgres import writer

        return writer.PostgresInsert(table, columns)

    def take(self, table: RemoteTable) -> Any | None:
        """Return an idle connection, or None."""
        with self._lock:
            idle = self._idle.get(_key(table))
            return idle.pop().connection if idle else None

    def connect(self, table: RemoteTable) -> Any:
        """Open a connection.

        Raises:
            dbapi.Error: it cannot be opened.
        """
        return self._databases.connect(table.login, self._clock())

    def give_back(self, table: RemoteTable, connection: Any) -> None:
        """Return a connection to the pool; no statement may be running on it."""
        now_s = self._clock()
        with self._lock:
            unused = self._unused(now_s)
            idle = self._idle.setdefault(_key(table), [])
            if len(idle) < _MOST_IDLE:
                idle.append(_Idle(connection, now_s))
            else:
                unused.append(_Idle(connection, now_s))
        for each in unused:
            _close(each.connection)

    def _unused(self, now_s: float) -> list["_Idle"]:
        """Take out what nobody used for long, for example because its password was changed."""
        oldest_s = now_s - _LONGEST_IDLE_S
        unused: list[_Idle] = []
        for login, idle in list(self._idle.items()):
            unused += [each for each in idle if each.since_s < oldest_s]
            self._idle[login] = [each for each in idle if each.since_s >= oldest_s]
            if not self._idle[login]:
                del self._idle[login]
        self._databases.close_unused(now_s)
        return unused


class PostgresRows:
    """The rows of a statement, read in batches."""

    def __init__(
        self, reader: PostgresReader, table: RemoteTable, sql: str, schema: pa.Schema
    ) -> None:
        self._reader = reader
        self._table = table
        self._sql = sql
        self._schema = schema
        self._connection: Any = None
        self._cursor: Any = None
        self._batches: Any = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield _typed(self._table, batch, self._schema)

    def close(self) -> None:
        """Stop the statement if it is running, and close its connection."""
        # The driver does not allow closing while another thread uses it. The cancellation is
        # repeated, because the statement may start after the first attempt.
        while not self._reading.acquire(timeout=_CANCEL_AGAIN_S):
            connection = self._connection
            if connection is not None:
                with suppress(dbapi.Error):
                    connection.adbc_cancel()
        try:
            if not self._is_closed:
                self._end()
        finally:
            self._reading.release()

    def _next(self) -> pa.RecordBatch | None:
        with self._reading:
            if self._is_closed:
                return None
            try:
                if self._batches is None:
                    self._begin()
                return self._batches.read_next_batch()
            except StopIteration:
                self._is_closed = True
                self._cursor.close()
                self._reader.give_back(self._table, self._connection)
                return None
            except (dbapi.Error, pa.ArrowException, OSError) as exc:
                self._end()
                raise _error(self._table, exc) from exc

    def _begin(self) -> None:
        """Run the statement; if an idle connection turns out to be broken, use another one."""
        while (kept := self._reader.take(self._table)) is not None:
            try:
                return self._execute(kept)
            except (dbapi.Error, OSError) as exc:
                if not _is_broken(exc):
                    raise
                self._drop()
        self._connection = self._reader.connect(self._table)
        with self._connection.cursor() as cursor:
            cursor.execute(_WATCHES_CLIENT)
            cursor.fetchall()
        self._execute(self._connection)

    def _execute(self, connection: Any) -> None:
        self._connection = connection
        self._cursor = connection.cursor(adbc_stmt_kwargs=_OPTIONS)
        self._cursor.execute(self._sql)
        self._batches = self._cursor.fetch_record_batch()

    def _end(self) -> None:
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        """Close what is open, innermost first."""
        self._batches = None
        if self._cursor is not None:
            with suppress(dbapi.Error):
                self._cursor.close()
        if self._connection is not None:
            _close(self._connection)
        self._cursor = self._connection = None


def _key(table: RemoteTable) -> Login:
    return frozenset(table.login.items())


def _close(connection: Any) -> None:
    with suppress(dbapi.Error):
        connection.close()


def _typed(table: RemoteTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the columns to the requested types.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(_column(array, field.type))
        except (pa.ArrowException, ValueError) as exc:
            raise InvalidQueryError(
                f"{table.title}: a value of column '{field.name}' is not a {field.type}; declare "
                "the column under 'columns' with a type that fits, for example text"
            ) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count < len(array) and _has_endless(array):
        raise ValueError("infinity")
    if pa.types.is_decimal(type_) and pa.types.is_string(array.type):
        return decimals(array, type_)
    return array if array.type == type_ else pc.cast(array, type_)


def _has_endless(array: pa.Array) -> bool:
    if pa.types.is_timestamp(array.type):
        return bool(pc.min(array.view(pa.int64())).as_py() <= _ENDLESS)
    if pa.types.is_date32(array.type):
        return bool(pc.min(array.view(pa.int32())).as_py() <= _ENDLESS_DAYS)
    return False


def _is_broken(exc: BaseException) -> bool:
    """Return whether the error means a lost connection rather than an invalid statement."""
    state = getattr(exc, "sqlstate", None) or ""
    if state:
        return state.startswith(_BROKEN)
    return "ERROR:" not in str(exc)


def _error(table: RemoteTable, exc: BaseException) -> QueryError:
    """Convert a driver error; only the server's own message is shown to users."""
    said = _said(exc)
    if getattr(exc, "sqlstate", None) == _OVERFLOW or _TOO_LARGE in said:
        return InvalidQueryError(
            f"overflow: {table.title}: {said}; cast what is computed to DECIMAL(38, 0) or "
            "DOUBLE first"
        )
    return ExecutionError(
        f"{table.title} cannot be read: {said}; check the database, then run the query again"
    )


def _said(exc: BaseException) -> str:
    """Return the server's message without the driver's prefix, the statement and the host."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    found = next((line for line in lines if "ERROR:" in line or "FATAL:" in line), "")
    for word in ("ERROR:", "FATAL:"):
        if word in found:
            return found.partition(word)[2].strip()
    return "the connection failed"
