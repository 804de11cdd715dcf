"""Runs SQLite calls in a thread with its own connection, so that they do not block the loop."""

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
    """Runs functions on one connection, one at a time, in order of arrival."""

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
        """Add work to the end of the queue, immediately and in the order of calls.

        Raises:
            ShuttingDownError: the lane is closed.
        """
        if self._is_closed:
            raise ShuttingDownError(f"state store {self._path} is closed")
        return self._thread.submit(self._work, work)

    async def run_work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work and return its result. Work that is cancelled in the queue never starts."""
        return await asyncio.wrap_future(self.submit(work))

    async def aclose(self) -> None:
        """Finish the queued work, then close the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        closing = self._thread.submit(self._work, self._close)
        self._thread.shutdown(wait=False)
        # Shielded: who is cancelled must not cancel the closing, too, while it waits its turn.
        await asyncio.shield(asyncio.wrap_future(closing))

    def _open(self) -> sqlite3.Connection:
        with errors.explained(self._path):
            return file.open_file(self._path)

    def _close(self, connection: sqlite3.Connection) -> None:
        connection.close()
        # SQLite has removed its -wal and -shm files, so there may be space again.
        file.reserve(self._path)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # Users see these errors, and must not see paths of the server.
        with errors.explained(Path(self._path.name)):
            return work(self._connection)
