"""Background tasks with an owner, which logs, counts and reports their failures.

A failure is not seen in a bare `asyncio.create_task`, so code that waits for its work may wait
forever. Use `Tasks` for work that nobody awaits, and `begin` for work that the caller awaits.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from caraway_core.concurrency import backoff
from caraway_core.concurrency.backoff import Backoff
from caraway_core.errors import CarawayError

logger = logging.getLogger(__name__)
FAILURES: Counter[str] = Counter()
"""Counts of failed background tasks of this process, by the kind of their work."""
OnFailure = Callable[[BaseException], None]
_DELAYS = backoff.USUAL
_STEADY_S = 60.0
"""Work that ran for this long starts again with the first wait."""
_LOOK_S = 0.05
_Result = TypeVar("_Result")


class Tasks:
    """The background tasks of one owner; they end with it, and no failure is silent."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self,
        work: Coroutine[object, object, _Result],
        kind: str,
        on_failure: OnFailure | None = None,
        **fields: object,
    ) -> "asyncio.Task[_Result]":
        """Run work that is not awaited; a failure is logged with the fields, then reported."""
        task = asyncio.get_running_loop().create_task(work, name=kind)
        self._tasks.add(task)

        def ended(task: "asyncio.Task[_Result]") -> None:
            self._tasks.discard(task)
            if (exc := _failure(task)) is not None:
                note(exc, kind, on_failure, fields=fields)

        task.add_done_callback(ended)
        return task

    def keep(
        self,
        work: Callable[[], Coroutine[object, object, None]],
        kind: str,
        on_failure: OnFailure | None = None,
        **fields: object,
    ) -> "asyncio.Task[None]":
        """Run work until it ends by itself; begin it again with back-off after each failure."""
        return self.spawn(_kept(work, kind, on_failure, fields), kind, on_failure, **fields)

    def cancel(self) -> None:
        """Cancel every task; `ended` waits for them."""
        _cancel_once(list(self._tasks))

    async def ended(self) -> None:
        """Wait until every task has ended."""
        # Not `gather`: its cancellation would cancel the tasks again, and end their clean-up.
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def aclose(self) -> None:
        self.cancel()
        await self.ended()


def _cancel_once(tasks: Sequence["asyncio.Task[object]"]) -> None:
    """Cancel tasks, but not those that are cancelled already.

    A second cancel would end the clean-up that the first began, and leave what it closes. But a
    task in which an `asyncio.timeout` expires looks cancelled, too, until it has taken that back.
    So those tasks are looked at again until they have ended.
    """
    unsure = [task for task in tasks if not task.done() and task.cancelling()]
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    if unsure:
        unsure[0].get_loop().call_later(_LOOK_S, _cancel_once, unsure)


def begin(work: Coroutine[Any, Any, _Result], kind: str = "") -> "asyncio.Task[_Result]":
    """Run work that the caller awaits; a failure after the caller left is not reported."""
    task = asyncio.get_running_loop().create_task(work, name=kind or None)
    task.add_done_callback(retrieve)
    return task


async def together(work: Sequence[Coroutine[object, object, _Result]]) -> list[_Result]:
    """Wait for all; the first failure ends the others and is raised."""
    if len(work) == 1:
        return [await work[0]]
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each) for each in work]
    except BaseExceptionGroup as failed:
        raise _first(failed) from failed
    return [each.result() for each in running]


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failed.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def retrieve(answer: "asyncio.Future[Any]") -> None:
    """Consume a failure that arrives after all waiters have left, so that asyncio does not warn."""
    if not answer.cancelled():
        answer.exception()


def is_cancelled() -> bool:
    """Return whether this task itself is cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def ends(exc: BaseException) -> bool:
    """Return whether an exception ends this task or the process; all others are failures.

    A source may raise CancelledError itself, and a panic in native code is not an `Exception`.
    """
    if isinstance(exc, asyncio.CancelledError):
        return is_cancelled()
    return isinstance(exc, KeyboardInterrupt | SystemExit | GeneratorExit)


def _failure(task: "asyncio.Task[object]") -> BaseException | None:
    if not task.cancelled():
        return task.exception()
    # No one cancelled the task: its own work raised CancelledError.
    return None if task.cancelling() else asyncio.CancelledError("raised by the work itself")


def _reasons(exc: BaseException) -> dict[str, None]:
    """Return what expected failures say, also those of a group; nothing if one is a bug."""
    if not isinstance(exc, BaseExceptionGroup):
        return {str(exc): None} if isinstance(exc, CarawayError) else {}
    found = [_reasons(each) for each in exc.exceptions]
    return {text: None for each in found for text in each} if all(found) else {}


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
    if is_logged and (reasons := _reasons(exc)):
        logger.warning("background work failed", extra={**extra, "reason": "; ".join(reasons)})
    elif is_logged:
        logger.error("background work failed", exc_info=exc, extra=extra)
    if on_failure is not None:
        try:
            on_failure(exc)
        except Exception:
            logger.exception("a failure could not be reported", extra=extra)


async def _kept(
    work: Callable[[], Coroutine[Any, object, None]],
    kind: str,
    on_failure: OnFailure | None,
    fields: Mapping[str, object],
) -> None:
    loop = asyncio.get_running_loop()
    again, last = Backoff(_DELAYS), ""
    while True:
        began_s = loop.time()
        try:
            return await work()
        except BaseException as exc:
            if ends(exc):
                raise
            if loop.time() - began_s > _STEADY_S:
                again.succeeded()
                last = ""
            # Log each cause once: the same failure may recur every minute for days.
            cause = f"{type(exc).__name__}: {exc}"
            note(exc, kind, on_failure, is_logged=cause != last, fields=fields)
            last = cause
        await asyncio.sleep(again.failed())
