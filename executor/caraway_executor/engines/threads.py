"""Thread pools that know which call their work belongs to, as native code cannot be cancelled."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

_Result = TypeVar("_Result")
current: ContextVar[int | None] = ContextVar("caraway-call", default=None)
"""The number of the call whose task submits work to a thread."""


class CallThreads(ThreadPoolExecutor):
    """A thread pool that tracks the work of each call."""

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most, thread_name_prefix=name)
        self._under_way: dict[int, set[Future[Any]]] = {}

    def submit(  # type: ignore[override] # the loop hands over no keywords
        self, work: Callable[..., _Result], /, *args: Any
    ) -> "Future[_Result]":
        """Submit work, and record it for the current call."""
        future = super().submit(work, *args)
        if (number := current.get()) is not None:
            self._under_way.setdefault(number, set()).add(future)
        return future

    def left(self, number: int) -> list[Future[Any]]:
        """Forget a call; return its work that still runs, and cancel what has not started."""
        futures = self._under_way.pop(number, set())
        return [each for each in futures if not each.done() and not each.cancel()]
