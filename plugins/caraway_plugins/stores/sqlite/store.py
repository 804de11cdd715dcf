"""The state store over one SQLite file."""

import asyncio
import sqlite3
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.sqlite import entries, logs
from caraway_plugins.stores.sqlite.entries import ConditionalWrite
from caraway_plugins.stores.sqlite.lane import SqliteLane
from caraway_plugins.stores.watching import Beginnings, ChangePage, StateWatcher

POLL_S = 0.25


class SqliteStateStore:
    """Keeps state in a local file that several processes of one machine may share.

    Construction opens the file and is meant for start-up; everything else runs in two threads
    of the store: one writes, one reads beside it.

    Raises:
        CarawayError: the file cannot be used; the message says what to do.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, *, poll_s: float = POLL_S
    ) -> None:
        self._clock = clock
        self._poll_s = poll_s
        self._writes = SqliteLane(path, "caraway-state-write")
        self._reads = SqliteLane(path, "caraway-state-read")
        # Weak: a watcher that nobody iterates any more needs no waking.
        self._watchers: weakref.WeakSet[StateWatcher] = weakref.WeakSet()
        self._begun = Beginnings()

    async def check(self) -> Sequence[str]:
        """Construction has checked everything."""
        return ()

    async def get(self, key: str) -> StateEntry | None:
        """Return the live entry of the key."""
        await self._begun.wait()
        return await self._reads.run(lambda file: entries.get(file, key, self._clock()))

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the revision of each key's live entry, 0 where there is none."""
        await self._begun.wait()
        return await self._reads.run(lambda file: entries.revisions(file, keys, self._clock()))

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        """Return the live entries under the prefix, in key order."""
        await self._begun.wait()
        return await self._reads.run(lambda file: entries.scan(file, prefix, self._clock()))

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write or delete if the key stands at the expected revision; return the new one.

        Raises:
            ValueError: the value is empty, which is how watchers are told of a deletion.
        """
        if value == b"":
            raise ValueError(f"key '{key}': an empty value stands for a deletion; write None")
        write = ConditionalWrite(key, value, expected, ttl_s)
        revision = await self._writes.run(
            lambda file: entries.compare_and_set(file, write, self._clock())
        )
        if revision is not None:
            self._wake()
        return revision

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of the log and return its offset."""
        return await self._writes.run(lambda file: logs.append(file, log, record))

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        """Return up to `limit` records from the offset on."""
        return await self._reads.run(lambda file: logs.read(file, log, start, limit))

    def watch(self, prefix: str) -> AsyncIterator[StateEntry]:
        """Yield what is written from this call on, also by other processes, and what expires.

        Raises:
            CarawayError: while iterating, when it paused so long that deletions are forgotten.
        """
        # In the queue of writes: what the caller writes after this call comes after it there.
        start = self._writes.submit(entries.revision)
        watcher = StateWatcher(
            prefix, lambda: asyncio.wrap_future(start), self._changes, self._poll_s
        )
        self._watchers.add(watcher)
        self._begun.add(lambda: asyncio.wrap_future(start))
        return watcher

    async def aclose(self) -> None:
        """Finish queued work and close the file; watchers end."""
        await self._reads.aclose()
        await self._writes.aclose()
        self._wake()

    async def _changes(self, prefix: str, after: int) -> ChangePage:
        def read(file: sqlite3.Connection) -> ChangePage:
            return entries.changes(file, prefix, after, self._clock())

        if await self._reads.run(lambda file: entries.is_sweep_due(file, self._clock())):
            await self._writes.run(lambda file: entries.sweep(file, self._clock()))
        return await self._reads.run(read)

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.wake()
