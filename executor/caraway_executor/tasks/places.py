"""Limits running tasks to the number of cores, because more would only divide memory further."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from caraway_core.errors import OverloadedError

_LONGEST_S = 300.0
_LONG_S = 0.8
"""After this wait for a slot, a task may run in another process."""
_MOST_ELSEWHERE = 8


class Places:
    """The slots for running tasks. A result that waits for its reader holds none.

    Background work has the same number of separate slots, so that interactive queries never wait
    behind it.
    """

    def __init__(self, count: int, longest_s: float = _LONGEST_S) -> None:
        self._count = count
        self._free = asyncio.Semaphore(count)
        self._free_in_background = asyncio.Semaphore(count)
        self._longest_s = longest_s
        self._lent = 0
        self._elsewhere = asyncio.Semaphore(_MOST_ELSEWHERE)
        self._is_stuck = False
        """True if a task has waited for long and no slot has become free since."""

    def lend(self, *, are_lent: bool) -> None:
        """Add as many slots as there are, or take those back as they become free.

        Tasks that keep the threads of the engine keep their slots, too. Others run elsewhere.
        """
        self._is_stuck = False
        if not are_lent:
            self._lent = self._count
            return
        for _ in range(self._count - self._lent):
            self._free.release()
        self._lent = 0

    @asynccontextmanager
    async def place(
        self, *, in_background: bool = False, may_leave: bool = False
    ) -> AsyncIterator[bool]:
        """Wait for a slot and hold it; yield whether it is one of this process.

        A task that `may_leave` runs in another process if tasks keep the slots for long.

        Raises:
            OverloadedError: none became free in time.
        """
        free = self._free_in_background if in_background else self._free
        if not await self._acquired(free, may_leave=may_leave):
            async with self._elsewhere:
                yield False
            return
        try:
            yield True
        finally:
            self._is_stuck = self._is_stuck and in_background
            if self._lent and not in_background:
                self._lent -= 1
            else:
                free.release()

    async def _acquired(self, free: asyncio.Semaphore, *, may_leave: bool) -> bool:
        """Wait for a slot; return False if the task has to run elsewhere."""
        if may_leave:
            if not self._is_stuck and await _in_time(free, min(_LONG_S, self._longest_s)):
                return True
            self._is_stuck = True
            if not self._elsewhere.locked():
                return False
        if await _in_time(free, self._longest_s):
            return True
        raise OverloadedError(
            f"the executor was busy with other work for {self._longest_s:g} s; try again later",
            retry_after_s=10,
        )


async def _in_time(free: asyncio.Semaphore, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await free.acquire()
    except TimeoutError:
        return False
    return True
