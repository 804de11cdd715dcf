"""The base of what reads over connections that are kept for the next statement."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_rows import DatabaseRows
from caraway_plugins.sources.idle_connections import IdleConnections


class PooledRows(DatabaseRows):
    """Rows that are read over a connection that is kept for the next statement."""

    def __init__(
        self, pool: IdleConnections, table: RemoteTable, sql: str, schema: pa.Schema
    ) -> None:
        """Take the pool of the reader, and the same as `DatabaseRows`."""
        super().__init__(table, sql, schema)
        self._pool = pool

    @staticmethod
    def close_idle(connection: Any) -> None:
        """Close a connection that no statement uses; it raises nothing."""
        connection.close()

    def _begin(self) -> Iterator[object]:
        """Run the statement; if an idle connection turns out to be broken, use another one."""
        while (kept := self._pool.take_idle(self._table.login)) is not None:
            self._connection = kept
            try:
                return self._run()
            except self.failures as exc:
                if not self._is_broken(exc):
                    raise
                self._drop()
        self._connection = self._connect()
        return self._run()

    def _finish(self) -> None:
        """Keep the connection."""
        connection, self._connection = self._connection, None
        self._pool.give(self._table.login, connection)

    @abstractmethod
    def _connect(self) -> object:
        """Open a connection."""

    @abstractmethod
    def _run(self) -> Iterator[object]:
        """Run the statement over `_connection`, and return its batches."""

    @abstractmethod
    def _is_broken(self, exc: Exception) -> bool:
        """Return whether an error means a lost connection rather than an invalid statement."""


class PooledReader:
    """Reads tables of any number of servers, and keeps some idle connections."""

    rows: ClassVar[type[PooledRows]]

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._pool = IdleConnections(self.rows, clock)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> PooledRows:
        """Return the rows of a statement; it starts when the first rows are read."""
        return self.rows(self._pool, table, sql, schema)
