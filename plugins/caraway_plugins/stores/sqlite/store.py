"""The state store in one SQLite file."""

import asyncio
import sqlite3
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.sqlite import entries
from caraway_plugins.stores.sqlite.entries import ConditionalWrite
from caraway_plugins.stores.sqlite.file import transaction
from caraway_plugins.stores.sqlite.lane import SqliteLane
from caraway_plugins.stores.watching import Beginnings, ChangePage, StateWatcher

POLL_S = 0.25


class SqliteStateStore:
    """Keeps state in a local file that several processes of one host can share.

    The constructor opens the file, so it blocks and is meant for startup. All other work runs in
    two threads of the store, one for writes and one for reads.

    Raises:
        CarawayError: the file cannot be used; the message gives advice.
    """

    def __init__(
        self, path: Path, clock: SecondsClock = time.time, *, poll_s: float = POLL_S
    ) -> None:
        self._clock = clock
        self._poll_s = poll_s
        self._writes = SqliteLane(path, "caraway-state-write")
        self._reads = SqliteLane(path, "caraway-state-read")
        # Weak references: a watcher that is no longer iterated need not be woken.
        self._watchers: weakref.WeakSet[StateWatcher] = weakref.WeakSet()
        self._begun = Beginnings()

    async def check(self) -> Sequence[str]:
        """Return no warnings; the constructor has checked the file."""
        return ()

    async def get(self, key: str) -> StateEntry | None:
        """Return the live entry of the key, or None."""
        await self._begun.wait()
        return await self._reads.run_work(lambda file: entries.get(file, key, self._clock()))

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the revision of each key's live entry, or 0."""
        await self._begun.wait()
        return await self._reads.run_work(lambda file: entries.revisions(file, keys, self._clock()))

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        """Return the live entries with the prefix, in key order."""
        await self._begun.wait()
        return await self._reads.run_work(lambda file: entries.scan(file, prefix, self._clock()))

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write or delete an entry if its revision is the expected one; return the new revision.

        Raises:
            ValueError: the value is empty, because empty values stand for deletions.
        """
        if value == b"":
            raise ValueError(f"key '{key}': an empty value stands for a deletion; write None")
        write = ConditionalWrite(key, value, expected, ttl_s)
        revision = await self._writes.run_work(
            lambda file: entries.compare_and_set(file, write, self._clock())
        )
        if revision is not None:
            self._wake()
        return revision

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of the log and return its offset."""
        return await self._writes.run_work(lambda file: _append(file, log, record))

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        """Return up to `limit` records, starting at the offset."""
        return await self._reads.run_work(lambda file: _read_log(file, log, start, limit))

    def watch(self, prefix: str) -> StateWatcher:
        """Yield writes after this call, also those of other processes, and expired entries.

        Raises:
            CarawayError: while iterating, if it paused for so long that deletions are forgotten.
        """
        # The start revision goes through the queue of writes, so later writes of the caller come
        # after it.
        submitted = self._writes.submit(entries.revision)
        watcher = StateWatcher(prefix, self, submitted, self._poll_s)
        self._watchers.add(watcher)
        self._begun.add(watcher)
        return watcher

    async def aclose(self) -> None:
        """Finish the queued work and close the file; watchers end."""
        # Also if the caller is cancelled meanwhile: both connections are closed.
        async with AsyncExitStack() as closing:
            closing.callback(self._wake)
            closing.push_async_callback(self._writes.aclose)
            closing.push_async_callback(self._reads.aclose)

    async def read_start(self, submitted: Future[int]) -> int:
        """Return the revision that a watch submitted to be read."""
        return await asyncio.wrap_future(submitted)

    async def read_revision(self) -> int:
        """Return the revision of the last write."""
        return await self._reads.run_work(entries.revision)

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        """Return the changes after a revision, once expired entries are swept."""

        def read(file: sqlite3.Connection) -> ChangePage:
            return entries.changes(file, prefix, after, self._clock())

        if await self._reads.run_work(lambda file: entries.is_sweep_due(file, self._clock())):
            await self._writes.run_work(lambda file: entries.sweep(file, self._clock()))
        return await self._reads.run_work(read)

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.wake()


def _append(connection: sqlite3.Connection, log: str, record: bytes) -> int:
    """Append a record to a log and return its position, counted from 0."""
    name = log.encode()
    with transaction(connection):
        (position,) = connection.execute(
            "SELECT coalesce(max(position) + 1, 0) FROM logs WHERE log = ?", (name,)
        ).fetchone()
        connection.execute("INSERT INTO logs VALUES (?, ?, ?)", (name, position, record))
    return int(position)


def _read_log(connection: sqlite3.Connection, log: str, start: int, limit: int) -> Sequence[bytes]:
    """Return up to `limit` records of a log, starting at a position."""
    # SQLite treats a negative limit as no limit.
    rows = connection.execute(
        "SELECT record FROM logs WHERE log = ? AND position >= ? ORDER BY position LIMIT ?",
        (log.encode(), start, max(limit, 0)),
    )
    return [record for (record,) in rows]
