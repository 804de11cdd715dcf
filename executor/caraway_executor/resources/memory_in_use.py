"""Measures the memory that data and statements of an executor use.

The resident memory of a process stays high after work, because allocators keep what was freed. An
idle executor would look full, and autoscaling would never remove it.
"""

import asyncio
import os

from caraway_executor.resources import freeing, usage
from caraway_executor.resources.room import TaskMemory

CALM_BEATS = int(freeing.CALM_S)
"""Heartbeats without work before free memory is returned; there is one each second."""


class OwnMemory:
    """The private memory of this process."""

    def measure_bytes(self) -> int:
        """Return how much is resident."""
        return usage.anonymous_bytes(os.getpid())

    def give_back(self) -> None:
        """Return to the system what allocators keep."""
        freeing.give_back()


class MemoryInUse:
    """The memory in use: counted rows, and what statements allocate while they run.

    Rows of datasets, indexes, models and tasks are counted in the budget. The engine does not say
    what a statement uses, so that is the growth of resident memory since the executor was idle.
    """

    def __init__(self, room: TaskMemory, memory: OwnMemory) -> None:
        self._room = room
        self._memory = memory
        self._idle_bytes = 0
        self._calm_beats = 0
        self._was_busy = False

    async def measure(self, active_tasks: int) -> int:
        """Return the bytes in use; call it with each heartbeat."""
        counted, resident = self._room.taken_bytes, self._memory.measure_bytes()
        if active_tasks:
            self._was_busy, self._calm_beats = True, 0
            return max(counted, resident - self._idle_bytes)
        self._calm_beats += 1
        if self._was_busy and self._calm_beats >= CALM_BEATS:
            self._was_busy = False
            await asyncio.to_thread(self._memory.give_back)
            resident = self._memory.measure_bytes()
        # Resident memory that is not counted: code, caches and memory that is kept for later.
        self._idle_bytes = max(0, resident - counted)
        return counted
