"""Following what is written under a prefix.

A watcher keeps no queue: it keeps the revision up to which it read, and reads on from the
store, which holds the newest entry of each key. So a slow watcher costs no memory, and gets the
latest entry of a key that was written many times meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_core.protocols.state import StateEntry

TRACE_KEPT_S = 3600.0
"""How long a store remembers a deletion for watchers to see."""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes after a revision, oldest first, and the revision up to which they are complete.

    Deletions up to `forgotten` left no trace.
    """

    entries: Sequence[StateEntry]
    upto: int
    forgotten: int


class Beginnings:
    """Watchers that have not begun yet. Whoever reads waits for them first: what is written
    after the reading is then seen by the watcher, also where reads overtake writes."""

    def __init__(self) -> None:
        self._pending: list[Callable[[], Awaitable[int]]] = []

    def add(self, start: Callable[[], Awaitable[int]]) -> None:
        self._pending.append(start)

    async def wait(self) -> None:
        """Wait until every watcher has begun, or failed to, which its own iteration tells."""
        while self._pending:
            start = self._pending[0]
            await asyncio.wait((asyncio.shield(start()),))
            if self._pending and self._pending[0] is start:
                self._pending.pop(0)


class StateWatcher(AsyncIterator[StateEntry]):
    """Yields entries in the order of their revisions, and ends when the store is closed."""

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
        """Look again now rather than at the next poll."""
        self._written.set()

    async def __anext__(self) -> StateEntry:
        try:
            while not self._page:
                # Cleared before reading: a write during the read is then not overlooked.
                self._written.clear()
                await self._read_on()
                if not self._page:
                    await self._pause()
        except ShuttingDownError:
            raise StopAsyncIteration from None
        return self._page.popleft()

    async def _read_on(self) -> None:
        if self._after is None:
            # Shielded: a caller that gives up waiting must not cancel it for its next call.
            self._after = await asyncio.shield(self._start())
        page = await self._changes(self._prefix, self._after)
        if page.forgotten > self._after:
            raise CarawayError(
                f"the watcher of '{self._prefix}' did not read for {TRACE_KEPT_S:.0f} s and "
                "missed deletions; watch anew, then scan"
            )
        self._page.extend(page.entries)
        self._after = page.upto

    async def _pause(self) -> None:
        # Other processes that write to the file, and expiry, give no sign: hence the limit.
        try:
            async with asyncio.timeout(self._poll_s):
                await self._written.wait()
        except TimeoutError:
            pass
