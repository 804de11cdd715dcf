"""Runs statements in MySQL and MariaDB, each over a connection of its own."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
import pymysql

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.protocols.remote import RemoteChange, RemoteInsert, TableChange, TableMerge
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import database_rows
from caraway_plugins.sources.database_rows import DatabaseRows
from caraway_plugins.sources.mysql import connecting, decoding

_BATCH_ROWS = 8 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
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

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE; it starts when it is run."""
        from caraway_plugins.sources.mysql import writer

        return writer.MysqlChange(table, change)

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows; it starts when it is run."""
        from caraway_plugins.sources.mysql import merger

        return merger.MysqlMerge(table, columns, merge)

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows; it starts when it is run."""
        from caraway_plugins.sources.mysql import creator

        return creator.MysqlCreation(definition, columns)

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table; it starts when it is run."""
        from caraway_plugins.sources.mysql import creator

        return creator.MysqlDrop(table)


class MysqlRows(DatabaseRows):
    """The rows of a statement, read in batches of packets as the server sends them."""

    failures = (pymysql.MySQLError, OSError)
    stop_again_s = 5.0

    def close(self) -> None:
        """End the statement at the server, which may run also while nobody reads."""
        if (connection := self._connection) is not None:
            connecting.kill(self._table.login, connection.thread_id())
        super().close()

    def _begin(self) -> Iterator[Any]:
        self._connection = connecting.connect(self._table.login)
        return _batches(connecting.packets(connecting.sent(self._connection, self._sql)))

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            with suppress(OSError):
                connecting.drop(connection)

    def _drop(self) -> None:
        if self._connection is not None:
            connecting.drop(self._connection)
        self._connection = None

    def _columns(self, batch: Sequence[bytes]) -> Sequence[pa.Array]:
        width = len(self._schema)
        return decoding.columns(batch, max(width, 1))[:width]

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        return decoding.typed(values, type_)

    def _error(self, exc: Exception) -> QueryError:
        # Neither the statement nor the host is shown.
        code = exc.args[0] if exc.args else None
        if code in _OUT_OF_RANGE:
            return database_rows.overflow(self._table)
        if code in _CHANGED:
            reason = "it is not what it was when it was loaded"
        elif code in _REFUSED:
            reason = "the server refuses the login or the rights of its user"
        elif isinstance(exc, OSError) or code in range(2000, 2100):
            reason = "the connection failed"
        else:
            reason = f"the server failed with error {code}"
        return ExecutionError(
            f"{self._table.title} cannot be read: {reason}; check the database, then run the "
            "query again"
        )


def _batches(packets: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the rows of one batch after the other."""
    while batch := _some(packets):
        yield batch


def _some(packets: Iterator[bytes]) -> list[bytes]:
    batch, size = [], 0
    for packet in islice(packets, _BATCH_ROWS):
        batch.append(packet)
        size += len(packet)
        if size >= _BATCH_BYTES:
            break
    return batch
