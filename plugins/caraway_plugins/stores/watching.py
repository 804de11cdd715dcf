"""Watches for changes under a prefix.

A watcher has no queue. It keeps the last revision that it read, and reads later changes from the
store, which has the newest entry of each key. A slow watcher therefore uses no memory, and sees
only the latest of several writes to a key.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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


class WatchedStore(Protocol):
    """The reads of a watcher from its store."""

    async def read_start(self, submitted: Any) -> int:
        """Return the revision that was submitted to be read when a watch began."""
        ...

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        """Return the changes after a revision."""
        ...

    async def read_revision(self) -> int:
        """Return the revision of the last write."""
        ...


class Beginnings:
    """Watchers that have not read their start revision yet.

    Reads wait for them. A write that follows a read is then always seen by the watcher, even where
    reads overtake writes.
    """

    def __init__(self) -> None:
        self._pending: list[StateWatcher] = []

    def add(self, watcher: "StateWatcher") -> None:
        """Add a watcher."""
        self._pending.append(watcher)

    async def wait(self) -> None:
        """Wait until every watcher has started or failed; its iteration reports a failure."""
        while self._pending:
            watcher = self._pending[0]
            await asyncio.wait((asyncio.shield(watcher.read_start()),))
            if self._pending and self._pending[0] is watcher:
                self._pending.pop(0)


class StateWatcher(AsyncIterator[StateEntry]):
    """Yields entries in order of revision, and ends when the store is closed."""

    def __init__(
        self,
        prefix: str,
        store: WatchedStore,
        submitted: Any,
        poll_s: float | None,
    ) -> None:
        """Take the store, and the read of the start revision that it has submitted."""
        self._prefix = prefix
        self._store = store
        self._submitted = submitted
        self._poll_s = poll_s
        self._after: int | None = None
        self._page: deque[StateEntry] = deque()
        self._written = asyncio.Event()
        self._behind: list[tuple[int, asyncio.Future[None]]] = []
        self._is_asked = False
        """True while the next entry is asked for, which is when the last one was taken."""

    def wake(self) -> None:
        """Look for changes now, rather than at the next poll."""
        self._written.set()

    async def read_start(self) -> int:
        """Return the revision after which it yields writes."""
        # Shielded: a cancelled caller must not cancel the read for the next call.
        return await asyncio.shield(self._store.read_start(self._submitted))

    async def catch_up(self) -> None:
        """Return once all that was written before this call was yielded; see `StateWatch`."""
        revision = await self._store.read_revision()
        if self._is_asked and not self._page and self._has_read(revision):
            return
        caught_up = asyncio.get_running_loop().create_future()
        self._behind.append((revision, caught_up))
        self.wake()
        await caught_up

    async def __anext__(self) -> StateEntry:
        self._is_asked = True
        try:
            while not self._page:
                self._tell_caught_up()
                # Cleared before the read, so that a write during the read is not missed.
                self._written.clear()
                await self._read_on()
                if not self._page:
                    self._tell_caught_up()
                    await self._pause()
        except ShuttingDownError as exc:
            self._tell_failed(exc)
            raise StopAsyncIteration from None
        except CarawayError as exc:
            self._tell_failed(exc)
            raise
        finally:
            self._is_asked = False
        return self._page.popleft()

    async def _read_on(self) -> None:
        if self._after is None:
            self._after = await self.read_start()
        page = await self._store.read_changes(self._prefix, self._after)
        if page.forgotten > self._after:
            raise CarawayError(
                f"the watcher of '{self._prefix}' did not read for {TRACE_KEPT_S:.0f} s and "
                "missed deletions; start a new watch, then scan"
            )
        self._page.extend(page.entries)
        self._after = page.upto

    def _tell_caught_up(self) -> None:
        behind, self._behind = self._behind, []
        for revision, caught_up in behind:
            if not self._has_read(revision):
                self._behind.append((revision, caught_up))
            elif not caught_up.done():
                caught_up.set_result(None)

    def _has_read(self, revision: int) -> bool:
        return self._after is not None and self._after >= revision

    def _tell_failed(self, exc: CarawayError) -> None:
        behind, self._behind = self._behind, []
        for _, caught_up in behind:
            if not caught_up.done():
                caught_up.set_exception(exc)

    async def _pause(self) -> None:
        # Writes of other processes and expiry do not set the event, hence the timeout.
        try:
            async with asyncio.timeout(self._poll_s):
                await self._written.wait()
        except TimeoutError:
            pass
