"""Limits running tasks to the number of cores, because more would only divide memory further."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from caraway_core.errors import OverloadedError

_LONGEST_S = 300.0


class Places:
    """The slots for running tasks. A result that waits for its reader holds none.

    Background work has the same number of separate slots, so that interactive queries never wait
    behind it.
    """

    def __init__(self, count: int, longest_s: float = _LONGEST_S) -> None:
        self._free = asyncio.Semaphore(count)
        self._free_in_background = asyncio.Semaphore(count)
        self._longest_s = longest_s

    @asynccontextmanager
    async def place(self, *, in_background: bool = False) -> AsyncIterator[None]:
        """Wait for a slot and hold it.

        Raises:
            OverloadedError: none became free in time.
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
