"""Measures the memory that data and statements of an executor use.

The resident memory of a process stays high after work, because allocators keep what was freed. An
idle executor would look full, and autoscaling would never remove it.
"""

import asyncio
import os
from collections.abc import Callable

from caraway_executor.resources import freeing, usage
from caraway_executor.resources.room import TaskMemory

CALM_BEATS = int(freeing.CALM_S)
"""Heartbeats without work before free memory is returned; there is one each second."""


def own_bytes() -> int:
    """Return the private memory of this process."""
    return usage.anonymous_bytes(os.getpid())


class MemoryInUse:
    """The memory in use: counted rows, and what statements allocate while they run.

    Rows of datasets, indexes, models and tasks are counted in the budget. The engine does not say
    what a statement uses, so that is the growth of resident memory since the executor was idle.
    """

    def __init__(
        self,
        room: TaskMemory,
        resident: Callable[[], int] = own_bytes,
        give_back: Callable[[], None] = freeing.give_back,
    ) -> None:
        self._room = room
        self._resident = resident
        self._give_back = give_back
        self._idle_bytes = 0
        self._calm_beats = 0
        self._was_busy = False

    async def measure(self, active_tasks: int) -> int:
        """Return the bytes in use; call it with each heartbeat."""
        counted, resident = self._room.taken_bytes, self._resident()
        if active_tasks:
            self._was_busy, self._calm_beats = True, 0
            return max(counted, resident - self._idle_bytes)
        self._calm_beats += 1
        if self._was_busy and self._calm_beats >= CALM_BEATS:
            self._was_busy = False
            await asyncio.to_thread(self._give_back)
            resident = self._resident()
        # Resident memory that is not counted: code, caches and memory that is kept for later.
        self._idle_bytes = max(0, resident - counted)
        return counted
