"""Watches for changes under a prefix.

A watcher has no queue. It keeps the last revision that it read, and reads later changes from the
store, which has the newest entry of each key. A slow watcher therefore uses no memory, and sees
only the latest of several writes to a key.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_core.protocols.state import StateEntry

TRACE_KEPT_S = 3600.0
"""How long a store keeps the tombstone of a deletion for watchers."""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes after a revision, oldest first; they are complete up to `upto`.

    Tombstones of deletions up to `forgotten` have been removed.
    """

    entries: Sequence[StateEntry]
    upto: int
    forgotten: int


class Beginnings:
    """Watchers that have not read their start revision yet.

    Reads wait for them. A write that follows a read is then always seen by the watcher, even where
    reads overtake writes.
    """

    def __init__(self) -> None:
        self._pending: list[Callable[[], Awaitable[int]]] = []

    def add(self, start: Callable[[], Awaitable[int]]) -> None:
        """Add a watcher by the function that reads its start revision."""
        self._pending.append(start)

    async def wait(self) -> None:
        """Wait until every watcher has started or failed; its iteration reports a failure."""
        while self._pending:
            start = self._pending[0]
            await asyncio.wait((asyncio.shield(start()),))
            if self._pending and self._pending[0] is start:
                self._pending.pop(0)


class StateWatcher(AsyncIterator[StateEntry]):
    """Yields entries in order of revision, and ends when the store is closed."""

    def __init__(
        self,
        prefix: str,
        start: Callable[[], Awaitable[int]],
        changes: Callable[[str, int], Awaitable[ChangePage]],
        poll_s: float,
    ) -> None:
        self._prefix = prefix
        self._start = start
        self._changes = changes
        self._poll_s = poll_s
        self._after: int | None = None
        self._page: deque[StateEntry] = deque()
        self._written = asyncio.Event()

    def wake(self) -> None:
        """Look for changes now, rather than at the next poll."""
        self._written.set()

    async def __anext__(self) -> StateEntry:
        try:
            while not self._page:
                # Cleared before the read, so that a write during the read is not missed.
                self._written.clear()
                await self._read_on()
                if not self._page:
                    await self._pause()
        except ShuttingDownError:
            raise StopAsyncIteration from None
        return self._page.popleft()

    async def _read_on(self) -> None:
        if self._after is None:
            # Shielded: a cancelled caller must not cancel the task for the next call.
            self._after = await asyncio.shield(self._start())
        page = await self._changes(self._prefix, self._after)
        if page.forgotten > self._after:
            raise CarawayError(
                f"the watcher of '{self._prefix}' did not read for {TRACE_KEPT_S:.0f} s and "
                "missed deletions; start a new watch, then scan"
            )
        self._page.extend(page.entries)
        self._after = page.upto

    async def _pause(self) -> None:
        # Writes of other processes and expiry do not set the event, hence the timeout.
        try:
            async with asyncio.timeout(self._poll_s):
                await self._written.wait()
        except TimeoutError:
            pass
