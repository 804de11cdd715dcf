"""Connections and transactions of the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from caraway_core.errors import CarawayError, UnavailableError

_RETRY_AFTER_S = 5
_WAIT_S = 10.0
_READERS = 8
_CONNECTIONS = 20
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


def embedded(folder: Path) -> URL:
    """Return the URL of the database in a data directory."""
    return URL.create("sqlite+aiosqlite", database=str(folder.absolute() / "management.db"))


def parse_url(url: str) -> URL:
    """Return the URL of a database, with its asynchronous driver.

    Raises:
        CarawayError: it is none of a database that can be used. The message names no password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise CarawayError("the database must be a URL such as postgresql://user@host/db") from None
    driver = _DRIVERS.get(parsed.drivername.partition("+")[0])
    if driver is None:
        raise CarawayError(
            f"databases of the kind '{parsed.drivername}' cannot be used; use sqlite or postgresql"
        )
    return parsed.set(drivername=driver)


class Database:
    """A database with transactions that read and transactions that change.

    With SQLite, changes wait for each other in one connection, and readers do not wait. Every
    method raises UnavailableError if the database does not respond.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_embedded = url.get_backend_name() == "sqlite"
        if self.is_embedded:
            self._writer = _sqlite(url, 1, "BEGIN IMMEDIATE")
            self._reader = _sqlite(url, _READERS, "BEGIN")
        else:
            self._writer = self._reader = create_async_engine(
                url,
                pool_size=_CONNECTIONS,
                max_overflow=0,
                pool_timeout=_WAIT_S,
                pool_pre_ping=True,
                connect_args={"timeout": _WAIT_S, "command_timeout": 60},
            )

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Read in one transaction, which is rolled back at the end."""
        async with _errors(), AsyncSession(self._reader, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def change(self) -> AsyncIterator[AsyncSession]:
        """Change in one transaction: committed at the end, or rolled back on an error."""
        async with (
            _errors(),
            AsyncSession(self._writer, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    @property
    def engine(self) -> AsyncEngine:
        """The engine of changes, for migrations."""
        return self._writer

    async def close(self) -> None:
        await self._writer.dispose()
        await self._reader.dispose()


def _sqlite(url: URL, connections: int, begin: str) -> AsyncEngine:
    engine = create_async_engine(
        url, pool_size=connections, max_overflow=0, pool_timeout=_WAIT_S,
        connect_args={"timeout": _WAIT_S, "isolation_level": None},
    )  # fmt: skip

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        # With FULL, what is committed survives a power failure.
        for name, value in (
            ("journal_mode", "WAL"),
            ("synchronous", "FULL"),
            ("foreign_keys", "ON"),
            ("cache_size", "-16000"),
        ):
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    # The driver begins no transactions by itself, so that a change has its lock from the start and
    # never fails in the middle because another one was faster.
    @event.listens_for(engine.sync_engine, "begin")
    def start(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


@asynccontextmanager
async def _errors() -> AsyncIterator[None]:
    """Turn errors of connections into UnavailableError; others are bugs, or conflicts."""
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeoutError, OSError) as exc:
        raise _away() from exc
    except DBAPIError as exc:
        if exc.connection_invalidated or "Connection" in type(exc.orig).__name__:
            raise _away() from exc
        raise


def _away() -> UnavailableError:
    return UnavailableError("the database does not respond; try again", _RETRY_AFTER_S)
