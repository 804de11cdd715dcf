"""Thread pools that know which call their work belongs to, as native code cannot be cancelled."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

_Result = TypeVar("_Result")
current: ContextVar[int | None] = ContextVar("caraway-call", default=None)
"""The number of the call whose task submits work to a thread."""


class _Work:
    """Work of a call, and the processor time of the thread that does it."""

    def __init__(self, work: Callable[..., object]) -> None:
        self._work = work
        self._clock: int | None = None
        self._began_s = 0.0

    def __call__(self, *args: object) -> Any:
        self._began_s = time.thread_time()
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        return self._work(*args)

    def used_s(self) -> float:
        """Return the processor time that the work has used, while its thread does it."""
        return 0.0 if self._clock is None else time.clock_gettime(self._clock) - self._began_s


class CallThreads(ThreadPoolExecutor):
    """A thread pool that tracks the work of each call."""

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most, thread_name_prefix=name)
        self._under_way: dict[int, dict[Future[Any], _Work]] = {}

    def submit(  # type: ignore[override] # the loop hands over no keywords
        self, work: Callable[..., _Result], /, *args: Any
    ) -> "Future[_Result]":
        """Submit work, and record it for the current call."""
        if (number := current.get()) is None:
            return super().submit(work, *args)
        timed = _Work(work)
        future: Future[_Result] = super().submit(timed, *args)
        self._under_way.setdefault(number, {})[future] = timed
        return future

    def used_s(self, number: int) -> float:
        """Return the processor time of a call's work that now runs."""
        works = self._under_way.get(number, {})
        return sum(work.used_s() for future, work in works.items() if future.running())

    def left(self, number: int) -> list[Future[Any]]:
        """Forget a call; return its work that still runs, and cancel what has not started."""
        futures = self._under_way.pop(number, {})
        return [each for each in futures if not each.done() and not each.cancel()]
