"""Measures the memory that data and statements of an executor use.

The resident memory of a process stays high after work, because allocators keep what was freed. An
executor would look full, and autoscaling would never remove it.
"""

import asyncio
import os
import time

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_executor.resources import freeing, usage
from caraway_executor.resources.room import TaskMemory

_LOOK_SHARE = 0.02
"""The share of a core that looking at all pages takes at most."""
_LOOK_S = 0.1
"""How long a heartbeat waits for it."""


class OwnMemory:
    """The private memory of this process, without what allocators have offered to the system."""

    def __init__(
        self,
        clock: SecondsClock = time.monotonic,
        processor_clock: SecondsClock = time.thread_time,
    ) -> None:
        """Take the clock, and the processor time of the thread that asks."""
        self._clock = clock
        self._processor_clock = processor_clock
        self._offered_bytes = 0
        self._due_s = clock()

    def measure_bytes(self) -> int:
        """Return how much is in use, by the pages that were offered at the last look."""
        return max(0, usage.anonymous_bytes(os.getpid()) - self._offered_bytes)

    def look_at_pages(self) -> None:
        """Look which pages are offered, unless the last look was a moment ago. Blocks."""
        now_s = self._clock()
        if now_s >= self._due_s:
            began_s = self._processor_clock()
            self._offered_bytes = usage.offered_bytes(os.getpid())
            self._due_s = now_s + (self._processor_clock() - began_s) / _LOOK_SHARE

    def give_back(self) -> None:
        """Return to the system what allocators keep."""
        freeing.give_back()
        self._due_s = self._clock()
        self.look_at_pages()


class MemoryInUse:
    """The memory in use: counted rows, and what statements allocate while they run.

    Rows of datasets, indexes, models and tasks are counted in the budget. The engine does not say
    what a statement uses, so that is the growth of resident memory since the executor was idle,
    without the pages that the allocator has offered to the system. An executor that always has some
    small statement offers those of a large one, too.
    """

    def __init__(
        self,
        room: TaskMemory,
        memory: OwnMemory,
        clock: SecondsClock = time.monotonic,
        worth_bytes: int = freeing.WORTH_BYTES,
    ) -> None:
        """With less than `worth_bytes` to win since the last time, memory is not returned."""
        self._room = room
        self._memory = memory
        self._clock = clock
        self._worth_bytes = worth_bytes
        self._left_bytes = 0
        self._idle_bytes = 0
        self._ended_tasks = 0
        self._worked_s = 0.0
        self._has_worked = False
        self._looking: asyncio.Task[None] | None = None

    async def measure(self, active_tasks: int, ended_tasks: int = 0) -> int:
        """Return the bytes in use; call it with each heartbeat.

        Every scheduler asks for heartbeats, and the executor itself, so they do not measure time;
        and between two of them small statements begin and end.
        """
        now_s = self._clock()
        if active_tasks or ended_tasks != self._ended_tasks:
            self._ended_tasks, self._worked_s, self._has_worked = ended_tasks, now_s, True
        if self._has_worked:
            await self._look()
        counted, resident = self._room.taken_bytes, self._memory.measure_bytes()
        if active_tasks:
            return max(counted, resident - self._idle_bytes)
        if self._has_worked and now_s - self._worked_s >= freeing.CALM_S:
            self._has_worked = False
            if resident - self._left_bytes >= self._worth_bytes:
                await asyncio.to_thread(self._memory.give_back)
                resident = self._left_bytes = self._memory.measure_bytes()
        # Resident memory that is not counted: code, caches and memory that is kept for later.
        self._idle_bytes = max(0, resident - counted)
        return counted

    async def _look(self) -> None:
        # Where all threads are busy, the heartbeat goes on with what the last look found.
        if self._looking is None or self._looking.done():
            self._looking = tasks.begin(
                asyncio.to_thread(self._memory.look_at_pages), "look at pages"
            )
        await asyncio.wait((self._looking,), timeout=_LOOK_S)
