"""Following what is written under a prefix.

A watcher keeps no queue: it keeps the revision up to which it read, and reads on from the
table, which holds the newest entry of each key. So a slow watcher costs no memory, and gets the
latest entry of a key that was written many times meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_core.protocols.state import Entry
from caraway_plugins.stores.sqlite.entries import TRACE_KEPT_S, Page


class Watcher(AsyncIterator[Entry]):
    """Yields entries in the order of their revisions, and ends when the store is closed."""

    def __init__(
        self,
        prefix: str,
        start: Future[int],
        changes: Callable[[str, int], Awaitable[Page]],
        poll_s: float,
    ) -> None:
        self._prefix = prefix
        self._start = start
        self._changes = changes
        self._poll_s = poll_s
        self._after: int | None = None
        self._page: deque[Entry] = deque()
        self._written = asyncio.Event()

    def wake(self) -> None:
        """Look again now rather than at the next poll."""
        self._written.set()

    async def __anext__(self) -> Entry:
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
            self._after = await asyncio.shield(asyncio.wrap_future(self._start))
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
