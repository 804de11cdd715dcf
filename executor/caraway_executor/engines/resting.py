"""Returns the free memory of an engine process once it has had no work for a while."""

import asyncio
from collections.abc import Callable

from caraway_core.concurrency.tasks import Tasks
from caraway_executor.resources import freeing
from caraway_executor.resources.memory_in_use import own_bytes

_WORTH_BYTES = 64 * 1024 * 1024
"""With less to win, the time of a core is worth more."""


class Resting:
    """Watches a process for calm. Call `worked` at the end of each work."""

    def __init__(
        self,
        tasks: Tasks,
        is_busy: Callable[[], bool],
        give_back: Callable[[], None] = freeing.give_back,
        resident: Callable[[], int] = own_bytes,
        calm_s: float = freeing.CALM_S,
    ) -> None:
        self._tasks = tasks
        self._is_busy = is_busy
        self._give_back = give_back
        self._resident = resident
        self._calm_s = calm_s
        self._loop = asyncio.get_running_loop()
        self._worked_s = 0.0
        self._is_waiting = False
        self._left_bytes = resident()

    def worked(self) -> None:
        """Note the end of some work."""
        self._worked_s = self._loop.time()
        if not self._is_waiting:
            self._is_waiting = True
            self._loop.call_later(self._calm_s, self._look)

    def _look(self) -> None:
        left_s = self._worked_s + self._calm_s - self._loop.time()
        if self._is_busy() or left_s > 0:
            self._loop.call_later(max(left_s, self._calm_s / 4), self._look)
            return
        self._is_waiting = False
        if self._resident() - self._left_bytes >= _WORTH_BYTES:
            self._tasks.spawn(self._rest(), "return free memory")

    async def _rest(self) -> None:
        await asyncio.to_thread(self._give_back)
        self._left_bytes = self._resident()
