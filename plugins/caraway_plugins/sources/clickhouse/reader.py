"""Runs statements in ClickHouse, over connections that are kept."""

from collections.abc import Iterator

import pyarrow as pa

from caraway_plugins.sources.clickhouse import connecting
from caraway_plugins.sources.clickhouse.connecting import ClickhouseConnection
from caraway_plugins.sources.database_rows import TOO_LARGE
from caraway_plugins.sources.pooled_rows import PooledReader, PooledRows


class ClickhouseRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = connecting.FAILURES
    stop_again_s = 1.0

    def _connect(self) -> object:
        return ClickhouseConnection(self._table.login)

    def _run(self) -> Iterator[object]:
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

    def _overflow(self, exc: Exception) -> str | None:
        return TOO_LARGE if connecting.is_overflow(exc) else None

    def _reason(self, exc: Exception) -> str:
        if connecting.is_refused(exc):
            return "the server refuses the login or the rights of its user"
        if connecting.is_away(exc):
            return "the connection failed"
        if connecting.is_absent(exc):
            return "it is not what it was when it was loaded"
        return connecting.reason(exc)

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


class ClickhouseReader(PooledReader):
    """Reads tables of any number of servers, and keeps some idle connections."""

    rows = ClickhouseRows
