"""Callers hear of the end of their run, or of a later one."""

import asyncio

import pytest

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.awaited_runs import AwaitedRuns
from caraway_acceleration.refresh.refresh_events import RunNumber
from caraway_core.errors import CarawayError


async def waiting(awaited: AwaitedRuns, *runs: int) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.ensure_future(awaited.wait(RunNumber(run))) for run in runs]
    await asyncio.sleep(0)
    return tasks


async def settled(tasks: "list[asyncio.Task[None]]") -> list[bool]:
    for _ in range(2):
        await asyncio.sleep(0)
    return [each.done() for each in tasks]


async def test_a_run_ends_the_waits_for_it_and_for_earlier_ones() -> None:
    awaited = AwaitedRuns()
    tasks = await waiting(awaited, 1, 2, 3)
    awaited.end(events.Succeeded(RunNumber(2), 7))
    assert await settled(tasks) == [True, True, False]
    awaited.end(events.Succeeded(RunNumber(3), 8))
    assert await settled(tasks) == [True] * 3


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (events.RunFailed(RunNumber(1), "the source is away"), "the source is away"),
        (events.RunCancelled(RunNumber(1)), "the refresh was stopped"),
    ],
)
async def test_the_caller_hears_why_there_is_no_version(
    event: events.RunFailed | events.RunCancelled, said: str
) -> None:
    awaited = AwaitedRuns()
    (task,) = await waiting(awaited, 1)
    awaited.end(event)
    with pytest.raises(CarawayError, match=said):
        await task


async def test_a_caller_who_went_away_is_no_obstacle() -> None:
    awaited = AwaitedRuns()
    gone, there = await waiting(awaited, 1, 1)
    gone.cancel()
    await asyncio.sleep(0)
    awaited.end(events.Succeeded(RunNumber(1), 7))
    assert await settled([gone, there]) == [True, True]
    assert there.exception() is None


async def test_all_waits_can_be_cancelled() -> None:
    awaited = AwaitedRuns()
    tasks = await waiting(awaited, 1, 9)
    awaited.cancel()
    await settled(tasks)
    assert all(each.cancelled() for each in tasks)
