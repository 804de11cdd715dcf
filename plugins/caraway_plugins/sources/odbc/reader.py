"""Runs statements over drivers of ODBC, over connections that are kept."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.odbc import connecting
from caraway_plugins.sources.odbc.connecting import OdbcConnection
from caraway_plugins.sources.pooled_rows import PooledReader, PooledRows


class OdbcRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = connecting.FAILURES
    advice = "check the server, then run the query again"
    _was_closed = False

    def close(self) -> None:
        """End the statement with its next batch: the client has no way to stop it before."""
        self._was_closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    @staticmethod
    def close_idle(connection: object) -> None:
        pass  # It is closed when nothing refers to it.

    def _connect(self) -> object:
        return OdbcConnection(self._table.login)

    def _run(self) -> Iterator[object]:
        return self._until_closed(self._connection.begin(self._sql))

    def _until_closed(self, batches: Any) -> Iterator[object]:
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

    def _reason(self, exc: Exception) -> str:
        if connecting.is_refused(exc):
            return "the server refuses the login"
        if connecting.is_away(exc):
            return "the connection failed, or the time of params.odbc_query_timeout is over"
        return connecting.message(exc, self._table.login)

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_decimal(type_) and pa.types.is_string(values.type):
            return decimals(values, type_)
        return values.cast(type_)


class OdbcReader(PooledReader):
    """Reads tables of any number of databases, and keeps some idle connections."""

    rows = OdbcRows
