"""Background tasks with an owner: what they raise is logged, counted and reported.

A failure in a bare `asyncio.create_task` is seen by nobody, and whoever waits for its work waits
without end. Use `Tasks` for work that nobody awaits, and `begin` for work that the caller awaits.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
FAILURES: Counter[str] = Counter()
"""How often background tasks of this process failed, by the kind of their work."""
OnFailure = Callable[[BaseException], None]
_LONGEST_PAUSE_S = 60.0
_Result = TypeVar("_Result")


class Tasks:
    """The background tasks of one owner. They end with it, and none fails in silence."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self,
        work: Coroutine[Any, Any, _Result],
        kind: str,
        on_failure: OnFailure | None = None,
        **fields: object,
    ) -> "asyncio.Task[_Result]":
        """Run work that nobody awaits; a failure is logged with the fields, then reported."""
        task = asyncio.get_running_loop().create_task(work, name=kind)
        self._tasks.add(task)

        def ended(task: "asyncio.Task[_Result]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (exc := task.exception()) is not None:
                note(exc, kind, on_failure, fields=fields)

        task.add_done_callback(ended)
        return task

    def keep(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        kind: str,
        on_failure: OnFailure | None = None,
        **fields: object,
    ) -> "asyncio.Task[None]":
        """Run work until it ends by itself; begin it again with back-off after each failure."""
        return self.spawn(_kept(work, kind, on_failure, fields), kind, on_failure, **fields)

    def cancel(self) -> None:
        """Cancel every task; `ended` waits for them."""
        for task in list(self._tasks):
            task.cancel()

    async def ended(self) -> None:
        """Wait until every task has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        self.cancel()
        await self.ended()


def begin(work: Coroutine[Any, Any, _Result]) -> "asyncio.Task[_Result]":
    """Run work that the caller awaits; a failure after the caller left is not reported."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(retrieve)
    return task


def retrieve(answer: "asyncio.Future[Any]") -> None:
    """Look at a failure that comes after everybody has left: it is not worth a warning."""
    if not answer.cancelled():
        answer.exception()


def is_cancelled() -> bool:
    """Whether this very task is cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def note(
    exc: BaseException,
    kind: str,
    on_failure: OnFailure | None = None,
    *,
    is_logged: bool = True,
    fields: Mapping[str, object] | None = None,
) -> None:
    """Count a failure of background work, log it, and report it to its owner."""
    FAILURES[kind] += 1
    extra = {"work": kind, **(fields or {})}
    if is_logged:
        logger.error("background work failed", exc_info=exc, extra=extra)
    if on_failure is not None:
        try:
            on_failure(exc)
        except Exception:
            logger.exception("a failure could not be reported", extra=extra)


def pause_s(failures: int) -> float:
    """Return the back-off after so many failures: 1, 2, 4 ... 60 s, spread by up to a fifth."""
    return float(min(2.0 ** (failures - 1), _LONGEST_PAUSE_S)) * (1 + random.random() / 5)


async def _kept(
    work: Callable[[], Coroutine[Any, Any, None]],
    kind: str,
    on_failure: OnFailure | None,
    fields: Mapping[str, object],
) -> None:
    loop = asyncio.get_running_loop()
    failures, last = 0, ""
    while True:
        began_s = loop.time()
        try:
            return await work()
        except Exception as exc:
            if loop.time() - began_s > _LONGEST_PAUSE_S:
                failures, last = 0, ""
            failures += 1
            # Once for each cause: the same one may come back every minute for days.
            cause = f"{type(exc).__name__}: {exc}"
            note(exc, kind, on_failure, is_logged=cause != last, fields=fields)
            last = cause
        await asyncio.sleep(pause_s(failures))
