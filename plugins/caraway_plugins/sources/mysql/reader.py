"""Runs statements in MySQL and MariaDB, each over a connection of its own."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import pyarrow as pa
import pymysql

from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_rows import TOO_LARGE, DatabaseRows
from caraway_plugins.sources.mysql import connecting, decoding
from caraway_plugins.sources.writing_reader import DatabaseWriters, WritingReader

_BATCH_ROWS = 8 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_OUT_OF_RANGE = (1264, 1690)
_CHANGED = (1054, 1146, 1049)
_REFUSED = (1044, 1045, 1142, 1143, 1227, 1698)


class MysqlReader(WritingReader):
    """Reads tables of any number of servers."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "MysqlRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return MysqlRows(table, sql, schema)

    def _writers(self) -> DatabaseWriters:
        from caraway_plugins.sources.mysql.creator import MysqlCreation, MysqlDrop
        from caraway_plugins.sources.mysql.merger import MysqlMerge
        from caraway_plugins.sources.mysql.writer import MysqlChange, MysqlInsert

        return DatabaseWriters(MysqlInsert, MysqlChange, MysqlMerge, MysqlCreation, MysqlDrop)


class MysqlRows(DatabaseRows):
    """The rows of a statement, read in batches of packets as the server sends them."""

    failures = (pymysql.MySQLError, OSError)
    stop_again_s = 5.0

    def close(self) -> None:
        """End the statement at the server, which may run also while nobody reads."""
        if (connection := self._connection) is not None:
            connecting.kill(self._table.login, connection.thread_id())
        super().close()

    def _begin(self) -> Iterator[object]:
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

    def _overflow(self, exc: Exception) -> str | None:
        return TOO_LARGE if _code(exc) in _OUT_OF_RANGE else None

    def _reason(self, exc: Exception) -> str:
        code = _code(exc)
        if code in _CHANGED:
            return "it is not what it was when it was loaded"
        if code in _REFUSED:
            return "the server refuses the login or the rights of its user"
        if isinstance(exc, OSError) or code in range(2000, 2100):
            return "the connection failed"
        return f"the server failed with error {code}"


def _code(exc: Exception) -> object:
    return exc.args[0] if exc.args else None


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
