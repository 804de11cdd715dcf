"""SQLite in the process: what is quick runs at once, and what waits runs in a thread.

A statement that finds some rows by an index takes microseconds, so a thread for each step of it, as
a general driver needs, would cost many times what it does. Here a statement that reads runs on the
event loop; one that takes longer than that is good for is begun again in a thread. Changes run in a
thread, because they wait for their lock and for the disk.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, wait
from typing import Any, Self, TypeVar

from sqlalchemy import Pool, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import await_only

_Result = TypeVar("_Result")
DRIVER = "sqlite+caraway"
_WAIT_S = 10.0
_QUICK_S = 0.005
_INTERRUPTED_S = 0.01
_STEPS = 10_000
"""After so many steps of SQLite's machine, which take less than a millisecond, it is asked whether
the statement goes on."""
_BEGUN_AGAIN = frozenset({sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY})
_SETTINGS = (
    # With FULL, commits survive a power failure.
    ("journal_mode", "WAL"),
    ("synchronous", "FULL"),
    ("foreign_keys", "ON"),
    ("cache_size", "-16000"),
)


class EmbeddedDialect(SQLiteDialect_pysqlite):
    """The dialect of SQLite, whose connections wait as coroutines do."""

    driver = "caraway"
    is_async = True
    supports_statement_cache = True

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        """Return a pool whose callers wait as coroutines do."""
        return AsyncAdaptedQueuePool


registry.register("sqlite.caraway", __name__, EmbeddedDialect.__name__)


class _Connection(sqlite3.Connection):
    """A connection that one task uses at a time."""

    threads: Executor

    def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Do work in a thread, while the event loop goes on. It is over when this returns."""
        running = self.threads.submit(work)
        try:
            result: _Result = await_only(asyncio.wrap_future(running))
        except asyncio.CancelledError:
            # No other code may use the connection before the thread has left it. An interrupt
            # before the statement has begun does nothing.
            while not running.done():
                self.interrupt()
                wait([running], _INTERRUPTED_S)
            raise
        return result


class ReadingConnection(_Connection):
    """A connection whose statements run on the event loop, as long as they are quick."""

    quick_until = float("inf")

    def cursor(self, factory: object = None) -> Any:
        """Return a cursor."""
        return super().cursor(_ReadingCursor)

    def is_late(self) -> bool:
        """Return whether the statement that runs should run in a thread."""
        return time.monotonic() > self.quick_until


class WritingConnection(_Connection):
    """A connection whose statements run in a thread."""

    def cursor(self, factory: object = None) -> Any:
        """Return a cursor."""
        return super().cursor(_WritingCursor)

    def commit(self) -> None:
        """Commit, which waits for the disk."""
        self.in_thread(super().commit)


class _Cursor(sqlite3.Cursor):
    """A cursor that has all rows of its statement once that has run."""

    connection: _Connection
    _rows: list[Any]
    _next = 0

    def fetchone(self) -> Any:
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[object]:
        begin = self._next
        self._next = min(begin + (self.arraysize if size is None else size), len(self._rows))
        return self._rows[begin : self._next]

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self._rows))

    async def _async_soft_close(self) -> None:
        """SQLAlchemy calls it for a result without rows."""

    def _run(self, sql: str, parameters: Any) -> None:
        super().execute(sql, parameters)
        self._rows, self._next = super().fetchall(), 0


class _ReadingCursor(_Cursor):
    connection: ReadingConnection

    def execute(self, sql: str, parameters: object = ()) -> Self:
        connection = self.connection
        connection.quick_until = time.monotonic() + _QUICK_S
        try:
            self._run(sql, parameters)
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode not in _BEGUN_AGAIN:
                raise
            connection.quick_until = float("inf")
            connection.in_thread(lambda: self._wait_and_run(sql, parameters))
        return self

    def _wait_and_run(self, sql: str, parameters: object) -> None:
        sqlite3.Connection.execute(self.connection, f"PRAGMA busy_timeout={_WAIT_S * 1_000:.0f}")
        try:
            self._run(sql, parameters)
        finally:
            sqlite3.Connection.execute(self.connection, "PRAGMA busy_timeout=0")


class _WritingCursor(_Cursor):
    def execute(self, sql: str, parameters: object = ()) -> Self:
        self.connection.in_thread(lambda: self._run(sql, parameters))
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        def run() -> None:
            super(_WritingCursor, self).executemany(sql, parameters)
            self._rows, self._next = [], 0

        self.connection.in_thread(run)
        return self


def create_reader(url: URL, connections: int, threads: Executor) -> AsyncEngine:
    """Return an engine whose transactions read."""
    engine = _create(url, connections, threads, ReadingConnection, "BEGIN")

    @event.listens_for(engine.sync_engine, "connect")
    def watch(connection: ReadingConnection, _: object) -> None:
        sqlite3.Connection.execute(connection, "PRAGMA busy_timeout=0")
        connection.set_progress_handler(connection.is_late, _STEPS)

    return engine


def create_writer(url: URL, threads: Executor) -> AsyncEngine:
    """Return an engine whose transactions change, one after the other."""
    return _create(url, 1, threads, WritingConnection, "BEGIN IMMEDIATE")


def _create(
    url: URL, connections: int, threads: Executor, factory: type[_Connection], begin: str
) -> AsyncEngine:
    def connect(*arguments: Any, **named: Any) -> _Connection:
        made = factory(*arguments, **named)
        made.threads = threads
        return made

    engine = create_async_engine(
        url, pool_size=connections, max_overflow=0, pool_timeout=_WAIT_S,
        connect_args={
            "timeout": _WAIT_S, "isolation_level": None, "factory": connect,
            "check_same_thread": False,
        },
    )  # fmt: skip

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: _Connection, _: object) -> None:
        for name, value in _SETTINGS:
            sqlite3.Connection.execute(connection, f"PRAGMA {name}={value}")

    # The driver begins no transactions by itself, so that a change has its lock from the start and
    # never fails in the middle because another one was faster.
    @event.listens_for(engine.sync_engine, "begin")
    def start(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine
