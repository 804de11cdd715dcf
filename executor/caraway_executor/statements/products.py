"""Limits concurrent products, because a product does not stop when it is cancelled.

DataFusion processes a whole batch of such a join before it checks for cancellation, and occupies a
worker thread. So a cancelled product keeps its slot until the process is calm again. Otherwise
several of them could occupy all worker threads.
"""

import asyncio
import time

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import OverloadedError

_LOOK_S = 0.25
_CALM_CORES = 0.5
_LONGEST_S = 60.0


class Products:
    """The slots for running products; a cancelled product frees its slot late.

    Background products have the same number of separate slots.
    """

    def __init__(
        self,
        places: int,
        cpu_time: SecondsClock = time.process_time,
        look_s: float = _LOOK_S,
        longest_s: float = _LONGEST_S,
    ) -> None:
        self._longest_s = longest_s
        self._places = {False: asyncio.Semaphore(places), True: asyncio.Semaphore(places)}
        self._cpu_time = cpu_time
        self._look_s = look_s
        self._leaving = tasks.Tasks()

    async def enter(self, *, in_background: bool = False) -> None:
        """Take a slot; `leave` must follow.

        Raises:
            OverloadedError: none became free in time.
        """
        try:
            async with asyncio.timeout(self._longest_s):
                await self._places[in_background].acquire()
        except TimeoutError:
            raise OverloadedError(
                "another join without equal keys (a cross join, or one on <, > or an expression) "
                f"has run for {self._longest_s:g} s, and few may run at once; join on equal "
                "keys, or try again later",
                retry_after_s=10,
            ) from None

    def leave(self, is_whole: bool, *, in_background: bool = False) -> None:
        """Free the slot: at once after a complete result, otherwise when its work has ended."""
        places = self._places[in_background]
        if is_whole:
            places.release()
            return
        self._leaving.spawn(self._leave_late(places), "give a place back")

    def close(self) -> None:
        """Cancel waiting for products to end."""
        self._leaving.cancel()

    async def _leave_late(self, places: asyncio.Semaphore) -> None:
        """Free the slot when the process is calm or time is up, as nothing signals the end."""
        try:
            waited_s = 0.0
            while waited_s < self._longest_s:
                before = self._cpu_time()
                await asyncio.sleep(self._look_s)
                waited_s += self._look_s
                if self._cpu_time() - before < _CALM_CORES * self._look_s:
                    return
        finally:
            places.release()
