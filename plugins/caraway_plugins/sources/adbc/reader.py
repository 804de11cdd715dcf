"""Runs statements over drivers of ADBC, over connections that are kept."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_plugins.sources import driver_messages, schemas
from caraway_plugins.sources.adbc import connecting
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.endless_times import has_endless
from caraway_plugins.sources.pooled_rows import PooledReader, PooledRows


class AdbcRows(PooledRows):
    """The rows of a statement, read in batches."""

    failures = connecting.FAILURES
    advice = "check the server, then run the query again"
    _found: pa.RecordBatchReader | None = None

    def _connect(self) -> object:
        return connecting.opened(self._table.login)

    def _run(self) -> Iterator[object]:
        self._found = self._connection.begin(self._sql)
        return iter(self._found)

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            connection.cancel()

    def _finish(self) -> None:
        self._close_batches()
        self._connection.end()
        super()._finish()

    def _drop(self) -> None:
        # The server ends a statement that it runs on the connection.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cancel()
        self._close_batches()
        if connection is not None:
            connection.close()

    def _is_broken(self, exc: Exception) -> bool:
        # A login that was refused may be one that has ended.
        return connecting.is_away(exc) or connecting.is_refused(exc)

    def _overflow(self, exc: Exception) -> str | None:
        return None if driver_messages.is_unfit(str(exc)) else super()._overflow(exc)

    def _reason(self, exc: Exception) -> str:
        if connecting.is_refused(exc):
            return "the server refuses the login"
        if connecting.is_away(exc):
            return "the connection failed"
        return connecting.message(exc, self._table.login)

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count == len(values):  # SQLite's driver knows no type of these.
            return pa.nulls(len(values), type_)
        if has_endless(values):
            raise ValueError("infinity")
        if pa.types.is_decimal(type_) and not pa.types.is_decimal(values.type):
            is_text = pa.types.is_string(values.type) or pa.types.is_integer(values.type)
            return decimals(values.cast(pa.string()), type_) if is_text else values.cast(type_)
        return values.cast(schemas.plain(values.type)).cast(type_)

    def _close_batches(self) -> None:
        batches, self._found = self._found, None
        if batches is not None:
            with suppress(*self.failures):
                batches.close()


class AdbcReader(PooledReader):
    """Reads tables of any number of servers, and keeps some idle connections."""

    rows = AdbcRows

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        super().__init__(clock)
        # The driver cannot close connections while the interpreter shuts down.
        atexit.register(self.close)
