"""Returns the free memory of an engine process once it has had no work for a while."""

import asyncio
from collections.abc import Sized

from caraway_core.concurrency.tasks import Tasks
from caraway_executor.resources import freeing
from caraway_executor.resources.memory_in_use import OwnMemory


class Resting:
    """Watches a process for calm. Call `worked` at the end of each work."""

    def __init__(
        self,
        tasks: Tasks,
        under_way: Sized,
        memory: OwnMemory,
        calm_s: float = freeing.CALM_S,
    ) -> None:
        """Take the collection of the work that is under way."""
        self._tasks = tasks
        self._under_way = under_way
        self._memory = memory
        self._calm_s = calm_s
        self._loop = asyncio.get_running_loop()
        self._worked_s = 0.0
        self._is_waiting = False
        self._left_bytes = memory.measure_bytes()

    def worked(self) -> None:
        """Note the end of some work."""
        self._worked_s = self._loop.time()
        if not self._is_waiting:
            self._is_waiting = True
            self._loop.call_later(self._calm_s, self._look)

    def _look(self) -> None:
        left_s = self._worked_s + self._calm_s - self._loop.time()
        if len(self._under_way) or left_s > 0:
            self._loop.call_later(max(left_s, self._calm_s / 4), self._look)
            return
        self._is_waiting = False
        if self._memory.measure_bytes() - self._left_bytes >= freeing.WORTH_BYTES:
            self._tasks.spawn(self._rest(), "return free memory")

    async def _rest(self) -> None:
        await asyncio.to_thread(self._memory.give_back)
        self._left_bytes = self._memory.measure_bytes()
