"""Connections and transactions of the database."""

import math
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.store import lookups, sqlite
from caraway_management.store.later import LaterWrites
from caraway_management.store.lookups import LookupRunner

_RETRY_AFTER_S = 5
_WAIT_S = 10.0
_TRUSTED_S = 1.0
_USED = "used"
_READERS = 8
_CONNECTIONS = 20
_DRIVERS = {
    "sqlite": sqlite.DRIVER,
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


def embedded(folder: Path) -> URL:
    """Return the URL of the database in a data directory."""
    return URL.create(sqlite.DRIVER, database=str(folder.absolute() / "management.db"))


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
            self._threads = ThreadPoolExecutor(1 + _READERS, "database")
            self._writer = sqlite.create_writer(url, self._threads)
            self._reader = sqlite.create_reader(url, _READERS, self._threads)
        else:
            self._writer = create_async_engine(
                url,
                pool_size=_CONNECTIONS,
                max_overflow=0,
                pool_timeout=_WAIT_S,
                connect_args={"timeout": _WAIT_S, "command_timeout": 60},
            )
            _ping_idle(self._writer)
            # Each statement sees all commits before its begin, in a transaction or not.
            self._reader = self._writer.execution_options(isolation_level="AUTOCOMMIT")
        self._lookups = LookupRunner(self._reader)
        self._unused: list[AsyncSession] = []
        self.later = LaterWrites(self.change)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Read. With SQLite, all statements see the database as it was at the first one."""
        session = self._unused.pop() if self._unused else self._new_reader()
        try:
            async with _errors():
                yield session
        finally:
            if session.in_transaction():
                async with session:
                    pass
            elif len(self._unused) < _CONNECTIONS:
                # Lookups leave nothing in it. To make and to close one takes as long as a lookup.
                self._unused.append(session)

    @asynccontextmanager
    async def change(self) -> AsyncIterator[AsyncSession]:
        """Change in one transaction: committed at the end, or rolled back on an error."""
        async with (
            _errors(),
            AsyncSession(self._writer, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def _new_reader(self) -> AsyncSession:
        info = {lookups.RUNNER: self._lookups}
        return AsyncSession(self._reader, expire_on_commit=False, info=info)

    @property
    def engine(self) -> AsyncEngine:
        """The engine of changes, for migrations."""
        return self._writer

    async def close(self) -> None:
        """Write what waits, and close the connections."""
        await self.later.aclose()
        self._lookups.close()
        await self._writer.dispose()
        await self._reader.dispose()
        if self.is_embedded:
            self._threads.shutdown()


def _ping_idle(engine: AsyncEngine) -> None:
    """Check connections that were idle before they are used; a server that restarted closed them.

    Those that were just used are not checked: it would take as long as most statements.
    """

    @event.listens_for(engine.sync_engine, "checkin")
    def note(_: object, record: ConnectionPoolEntry) -> None:
        record.info[_USED] = time.monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def check(connection: Any, record: ConnectionPoolEntry, _: object) -> None:
        if time.monotonic() - record.info.get(_USED, math.inf) < _TRUSTED_S:
            return
        dialect = engine.sync_engine.dialect
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as exc:
            raise DisconnectionError from exc


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
