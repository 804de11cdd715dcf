"""The running work of an executor, which ends with its call."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from caraway_core.concurrency import tasks as background
from caraway_core.errors import QueryCancelledError

_Result = TypeVar("_Result")


class RunningCalls:
    """Runs work on behalf of calls, cancels it with them, and counts its outcomes."""

    def __init__(self) -> None:
        self._running: dict[str, set[asyncio.Task[object]]] = {}
        self.finished = self.failed = 0

    def __len__(self) -> int:
        return sum(map(len, self._running.values()))

    def __contains__(self, call: str) -> bool:
        return call in self._running

    async def run(self, call: str, work: Coroutine[object, object, _Result]) -> _Result:
        """Run work, and count its outcome. A call may have several.

        Raises:
            QueryCancelledError: the call was cancelled.
        """
        task = background.begin(work)
        self._running.setdefault(call, set()).add(task)
        try:
            result = await task
        except BaseException as exc:
            self.failed += 1
            task.cancel()
            if isinstance(exc, asyncio.CancelledError) and not background.is_cancelled():
                raise QueryCancelledError("the query was cancelled") from None
            raise
        else:
            self.finished += 1
            return result
        finally:
            self._running[call].discard(task)
            if not self._running[call]:
                del self._running[call]

    def cancel(self, call: str) -> None:
        """Cancel the work of a call. Some of it may still run for a moment."""
        for task in list(self._running.get(call, ())):
            task.cancel()

    def cancel_all(self) -> None:
        """Cancel the work of all calls."""
        for call in list(self._running):
            self.cancel(call)
