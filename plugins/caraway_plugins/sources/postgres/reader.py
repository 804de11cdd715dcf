"""Runs statements in PostgreSQL and gives their rows as Arrow, over connections that are kept."""

import atexit
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import adbc_driver_postgresql.dbapi as postgresql
import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import RemoteTable

_MOST_IDLE = 8
_BATCH_BYTES = 4 * 1024 * 1024
_OVERFLOW = "22003"
_TOO_LARGE = "out of range"
"""Errors of rows that flow come without their SQLSTATE."""
_BROKEN = ("08", "57P")
"""Classes of SQLSTATE that say that the connection or the server is gone."""
_CANCEL_AGAIN_S = 0.2
_OPTIONS = {"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
_WATCHES_CLIENT = """
SELECT set_config(name, '2s', false) FROM pg_settings
WHERE name = 'client_connection_check_interval'
"""
"""Has the server stop a statement whose client is gone, as that of a process that was ended."""
_EPOCH_US = 946_684_800_000_000
_ENDLESS = -(2**63) + _EPOCH_US
"""What the driver makes of `-infinity`, and one less of `infinity`: it adds the other epoch."""
_Login = frozenset[tuple[str, str]]


class PostgresReader:
    """Reads tables of any number of servers; connections that are done are used again."""

    def __init__(self) -> None:
        self._idle: dict[_Login, list[Any]] = {}
        self._lock = threading.Lock()
        # The driver cannot close a connection any more while the interpreter ends.
        atexit.register(self.close)

    def close(self) -> None:
        """Close the connections that have no statement under way."""
        with self._lock:
            idle = [each for kept in self._idle.values() for each in kept]
            self._idle.clear()
        for each in idle:
            _close(each)

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "PostgresRows":
        """Return the rows of a statement, which begins when the first of them are read."""
        return PostgresRows(self, table, sql, schema)

    def take(self, table: RemoteTable) -> Any | None:
        """Return a connection that was kept, if there is one."""
        with self._lock:
            idle = self._idle.get(_key(table))
            return idle.pop() if idle else None

    def give_back(self, table: RemoteTable, connection: Any) -> None:
        """Keep a connection that has no statement under way."""
        with self._lock:
            idle = self._idle.setdefault(_key(table), [])
            if len(idle) < _MOST_IDLE:
                idle.append(connection)
                return
        _close(connection)


class PostgresRows:
    """The rows of a statement."""

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
        """Stop the statement, if it is under way; its connection is of no use then."""
        # Nothing of the driver may be closed while another thread is in it, and the statement may
        # begin after it was told to stop.
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
        """Run the statement; over a kept connection that turns out to be broken, run it again."""
        while (kept := self._reader.take(self._table)) is not None:
            try:
                return self._execute(kept)
            except (dbapi.Error, OSError) as exc:
                if not _is_broken(exc):
                    raise
                self._drop()
        self._connection = postgresql.connect(conninfo(self._table.login), autocommit=True)
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
        """Close what there is, the inner parts first."""
        self._batches = None
        if self._cursor is not None:
            with suppress(dbapi.Error):
                self._cursor.close()
        if self._connection is not None:
            _close(self._connection)
        self._cursor = self._connection = None


def conninfo(login: Mapping[str, str]) -> str:
    """Word a login for libpq."""
    return " ".join(f"{name}={_quoted(value)}" for name, value in login.items())


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _key(table: RemoteTable) -> _Login:
    return frozenset(table.login.items())


def _close(connection: Any) -> None:
    with suppress(dbapi.Error):
        connection.close()


def _typed(table: RemoteTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give the columns the types that are asked for.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(_column(array, field.type))
        except (pa.ArrowException, ValueError) as exc:
            raise InvalidQueryError(
                f"{table.title}: a value of column '{field.name}' is no {field.type}; declare the "
                "column under 'columns' with a type that holds it, for example text"
            ) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_timestamp(type_) and array.null_count < len(array):
        if pc.min(array.view(pa.int64())).as_py() <= _ENDLESS:
            raise ValueError("infinity")
    return array if array.type == type_ else pc.cast(array, type_)


def _is_broken(exc: BaseException) -> bool:
    """Tell if a connection is gone, rather than that the statement is wrong."""
    state = getattr(exc, "sqlstate", None) or ""
    if state:
        return state.startswith(_BROKEN)
    return "ERROR:" not in str(exc)


def _error(table: RemoteTable, exc: BaseException) -> QueryError:
    """Word an error of the driver, of which only the server's own words are for users."""
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
    """Return the server's own message, without the driver's frame, its statement and its host."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    found = next((line for line in lines if "ERROR:" in line or "FATAL:" in line), "")
    for word in ("ERROR:", "FATAL:"):
        if word in found:
            return found.partition(word)[2].strip()
    return "the connection failed"
