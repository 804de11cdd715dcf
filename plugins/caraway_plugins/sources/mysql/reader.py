"""Runs statements in MySQL and MariaDB, each over a connection of its own."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
import pymysql

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.protocols.remote import RemoteInsert
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.mysql import connecting, decoding

_BATCH_ROWS = 8 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_STOP_AGAIN_S = 5.0
_OUT_OF_RANGE = (1264, 1690)
_CHANGED = (1054, 1146, 1049)
_REFUSED = (1044, 1045, 1142, 1143, 1227, 1698)


class MysqlReader:
    """Reads tables of any number of servers."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "MysqlRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return MysqlRows(table, sql, schema)

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows; it starts when it is run."""
        from caraway_plugins.sources.mysql import writer

        return writer.MysqlInsert(table, columns)


class MysqlRows:
    """The rows of a statement, read in batches as the server sends them."""

    def __init__(self, table: RemoteTable, sql: str, schema: pa.Schema) -> None:
        self._table, self._sql, self._schema = table, sql, schema
        self._connection: Any = None
        self._packets: Iterator[bytes] | None = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while batch := self._next():
            yield _typed(self._table, batch, self._schema)

    def close(self) -> None:
        """End the statement at the server if it is running, and close its connection."""
        self._is_closed = True
        connection = self._connection
        if connection is not None:
            connecting.kill(self._table.login, connection.thread_id())
        while not self._reading.acquire(timeout=_STOP_AGAIN_S):
            if (connection := self._connection) is not None:
                with suppress(OSError):
                    connecting.drop(connection)
        try:
            self._end()
        finally:
            self._reading.release()

    def _next(self) -> list[bytes]:
        with self._reading:
            if self._is_closed:
                self._end()
                return []
            try:
                if self._packets is None:
                    self._connection = connecting.connect(self._table.login)
                    self._packets = connecting.packets(connecting.sent(self._connection, self._sql))
                batch = _some(self._packets)
            except (pymysql.MySQLError, OSError) as exc:
                self._end()
                if self._is_closed:
                    return []
                raise _error(self._table, exc) from exc
            if not batch:
                self._end()
            return batch

    def _end(self) -> None:
        self._packets = iter(())
        if self._connection is not None:
            connecting.drop(self._connection)
        self._connection = None


def _some(packets: Iterator[bytes]) -> list[bytes]:
    """Return the rows of the next batch."""
    batch, size = [], 0
    for packet in islice(packets, _BATCH_ROWS):
        batch.append(packet)
        size += len(packet)
        if size >= _BATCH_BYTES:
            break
    return batch


def _typed(table: RemoteTable, packets: list[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the requested types.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    made = []
    width = max(len(schema), 1)
    for column, field in zip(decoding.columns(packets, width), schema, strict=False):
        try:
            made.append(decoding.typed(column, field.type))
        except (pa.ArrowException, UnicodeDecodeError) as exc:
            raise InvalidQueryError(
                f"{table.title}: a value of column '{field.name}' is not a {field.type}; declare "
                "the column under 'columns' with a type that fits, for example text"
            ) from exc
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _error(table: RemoteTable, exc: Exception) -> QueryError:
    """Convert an error of the client; neither the statement nor the host is shown."""
    code = exc.args[0] if exc.args else None
    if code in _OUT_OF_RANGE:
        return InvalidQueryError(
            f"overflow: {table.title}: a number is too large for its type; cast what is computed "
            "to DECIMAL(38, 0) or DOUBLE first"
        )
    if code in _CHANGED:
        reason = "it is not what it was when it was loaded"
    elif code in _REFUSED:
        reason = "the server refuses the login or the rights of its user"
    elif isinstance(exc, OSError) or code in range(2000, 2100):
        reason = "the connection failed"
    else:
        reason = f"the server failed with error {code}"
    return ExecutionError(
        f"{table.title} cannot be read: {reason}; check the database, then run the query again"
    )
