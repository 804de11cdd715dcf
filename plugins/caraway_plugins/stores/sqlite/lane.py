"""A thread with a connection of its own, so that SQLite never holds up the event loop."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from caraway_core.errors import ShuttingDownError
from caraway_plugins.stores.sqlite import errors, file

T = TypeVar("T")


class SqliteLane:
    """Runs what it is given on one connection, one after another, in the order of arrival."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._is_closed = False
        try:
            self._connection = self._thread.submit(self._open).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Put the work at the end of the queue, at once and in the order of the calls.

        Raises:
            ShuttingDownError: the lane is closed.
        """
        if self._is_closed:
            raise ShuttingDownError(f"state store {self._path} is closed")
        return self._thread.submit(self._work, work)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Wait for the outcome. Work that is cancelled before its turn is never begun."""
        return await asyncio.wrap_future(self.submit(work))

    async def aclose(self) -> None:
        """Finish what is queued, then close the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        closing = self._thread.submit(self._work, self._close)
        self._thread.shutdown(wait=False)
        await asyncio.wrap_future(closing)

    def _open(self) -> sqlite3.Connection:
        with errors.explained(self._path):
            return file.open_file(self._path)

    def _close(self, connection: sqlite3.Connection) -> None:
        connection.close()
        # The files beside the store are gone now, so there may be room again.
        file.reserve(self._path)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # Users read these errors, and have no use for a path of the server.
        with errors.explained(Path(self._path.name)):
            return work(self._connection)
