"""Work that ends with its call, and is counted at each end."""

import asyncio

import pytest

from caraway_core.errors import InvalidQueryError, QueryCancelledError
from caraway_executor.tasks.running import RunningCalls


class _Work:
    """Work that runs until it is let go, or cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.is_cancelled = False

    async def run(self) -> str:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        return "done"


async def _fail() -> None:
    raise InvalidQueryError("no such column")


async def test_outcomes_are_counted_and_no_work_is_left() -> None:
    calls, work = RunningCalls(), _Work()
    work.may_end.set()
    assert await calls.run("a", work.run()) == "done"
    with pytest.raises(InvalidQueryError):
        await calls.run("a", _fail())
    assert (calls.finished, calls.failed, len(calls), "a" in calls) == (1, 1, 0, False)


async def test_cancelled_call_ends_all_its_work_and_none_of_others() -> None:
    calls, works = RunningCalls(), [_Work() for _ in range(3)]
    names = "mine", "mine", "other"
    running = [
        asyncio.ensure_future(calls.run(name, work.run()))
        for name, work in zip(names, works, strict=True)
    ]
    for work in works:
        await work.began.wait()
    assert len(calls) == 3
    calls.cancel("unknown")
    calls.cancel("mine")
    for mine in running[:2]:
        with pytest.raises(QueryCancelledError, match="was cancelled"):
            await mine
    assert [work.is_cancelled for work in works] == [True, True, False]
    assert len(calls) == 1 and "other" in calls
    works[2].may_end.set()
    assert await running[2] == "done"
    assert (calls.finished, calls.failed) == (1, 2)


async def test_end_of_one_work_of_a_call_leaves_the_other() -> None:
    calls, works = RunningCalls(), [_Work(), _Work()]
    first, second = [asyncio.ensure_future(calls.run("a", work.run())) for work in works]
    for work in works:
        await work.began.wait()
    works[0].may_end.set()
    assert await first == "done"
    assert "a" in calls and len(calls) == 1
    calls.cancel_all()
    with pytest.raises(QueryCancelledError):
        await second
    assert "a" not in calls


async def test_caller_that_leaves_is_not_told_of_a_cancelled_query() -> None:
    """Its own cancellation goes on, or it would do what comes after it."""
    calls, work = RunningCalls(), _Work()
    caller = asyncio.ensure_future(calls.run("a", work.run()))
    await work.began.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    while not work.is_cancelled:
        await asyncio.sleep(0)
    assert (calls.failed, len(calls)) == (1, 0)


async def test_all_work_can_be_cancelled_at_once() -> None:
    calls, works = RunningCalls(), [_Work() for _ in range(100)]
    running = [
        asyncio.ensure_future(calls.run(str(number % 7), work.run()))
        for number, work in enumerate(works)
    ]
    for work in works:
        await work.began.wait()
    calls.cancel_all()
    ends = await asyncio.gather(*running, return_exceptions=True)
    assert all(isinstance(each, QueryCancelledError) for each in ends)
    assert (calls.failed, len(calls)) == (100, 0)
