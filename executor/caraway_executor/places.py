"""As many tasks at once as there are cores: more of them would only share memory out thinner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from caraway_core.errors import OverloadedError

_LONGEST_S = 300.0


class Places:
    """A place for each task that works. An answer that waits for its reader holds none.

    Work in the background has as many places of its own, so that nobody who waits for an answer
    waits behind it.
    """

    def __init__(self, count: int, longest_s: float = _LONGEST_S) -> None:
        self._free = asyncio.Semaphore(count)
        self._free_in_background = asyncio.Semaphore(count)
        self._longest_s = longest_s

    @asynccontextmanager
    async def place(self, *, in_background: bool = False) -> AsyncIterator[None]:
        """Wait for a place and hold it.

        Raises:
            OverloadedError: none came free in time.
        """
        free = self._free_in_background if in_background else self._free
        try:
            async with asyncio.timeout(self._longest_s):
                await free.acquire()
        except TimeoutError:
            raise OverloadedError(
                f"the executor was busy with other work for {self._longest_s:g} s; try again later",
                retry_after_s=10,
            ) from None
        try:
            yield
        finally:
            free.release()
