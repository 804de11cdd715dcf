"""Calls in threads: cancelled tasks end their waits, and never block others."""

import asyncio
import threading
from functools import partial

import pyarrow as pa
import pytest

from caraway.errors import BrokenResponseError
from caraway.flight.pumps import BatchPump
from caraway.rows.readers import RecordReader, opened
from caraway.statements.async_handles import AsyncReader, ThreadedCalls
from caraway_core.errors import CarawayError
from tests.client.flight.pumping import SCHEMA, Feed, batch, ended

WAIT_S = 30.0


async def test_a_call_returns_its_result_or_raises_its_error() -> None:
    calls = ThreadedCalls(2)
    assert await calls.run_call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await calls.run_call(lambda: 1 // 0)
    calls.close()
    with pytest.raises(CarawayError, match="the client is closed"):
        await calls.run_call(lambda: 7)


async def test_cancelled_calls_end_what_all_threads_wait_for() -> None:
    """The end of a call must not wait for one of the threads: they all wait for it."""
    calls = ThreadedCalls(2)
    doors = [threading.Event() for _ in range(2)]
    tasks = [
        asyncio.ensure_future(calls.run_call(partial(door.wait, 10 * WAIT_S), abandoned=door.set))
        for door in doors
    ]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert await asyncio.wait_for(calls.run_call(lambda: "free"), WAIT_S) == "free"
    assert all(door.is_set() for door in doors)
    calls.close()


async def test_a_call_that_waits_for_a_thread_is_not_begun_after_its_task_ended() -> None:
    calls = ThreadedCalls(1)
    door, begun = threading.Event(), threading.Event()
    first = asyncio.ensure_future(calls.run_call(lambda: door.wait(WAIT_S)))
    second = asyncio.ensure_future(calls.run_call(begun.set))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((second,))
    door.set()
    assert await first
    assert await calls.run_call(lambda: True) and not begun.is_set()
    calls.close()


async def test_a_result_that_nobody_waits_for_is_given_back() -> None:
    calls = ThreadedCalls(1)
    door, begun = threading.Event(), threading.Event()
    unwanted: list[str] = []

    def call() -> str:
        begun.set()
        door.wait(WAIT_S)
        return "opened"

    task = asyncio.ensure_future(calls.run_call(call, unwanted=unwanted.append))
    assert await asyncio.to_thread(begun.wait, WAIT_S)
    task.cancel()
    await asyncio.wait((task,))
    door.set()
    assert await calls.run_call(lambda: "next") == "next"
    assert unwanted == ["opened"]
    calls.close()


async def test_an_error_that_nobody_waits_for_is_dropped() -> None:
    calls = ThreadedCalls(1)
    door, begun = threading.Event(), threading.Event()
    unwanted: list[object] = []

    def call() -> object:
        begun.set()
        door.wait(WAIT_S)
        raise BrokenResponseError("cut")

    task = asyncio.ensure_future(calls.run_call(call, unwanted=unwanted.append))
    assert await asyncio.to_thread(begun.wait, WAIT_S)
    task.cancel()
    await asyncio.wait((task,))
    door.set()
    assert await calls.run_call(lambda: "next") == "next" and unwanted == []
    calls.close()


def reader(feed: Feed) -> tuple[RecordReader, BatchPump]:
    pump = BatchPump(feed, "test")
    return opened(pump), pump


async def test_rows_come_batch_by_batch_and_once() -> None:
    calls = ThreadedCalls(2)
    found, pump = reader(Feed(20))
    async with AsyncReader(found, calls) as rows:
        assert rows.schema == SCHEMA
        assert [each async for each in rows] == [batch(number) for number in range(1, 21)]
        assert await rows.read_next_batch() is None
    assert ended(pump)
    calls.close()


async def test_cancelling_a_task_that_waits_for_rows_cancels_the_statement() -> None:
    calls = ThreadedCalls(1)
    feed = Feed(20, stalls_at=4)
    found, pump = reader(feed)
    rows = AsyncReader(found, calls)
    task = asyncio.ensure_future(rows.read_all())
    assert await asyncio.to_thread(feed.stalled.wait, WAIT_S)
    task.cancel()
    await asyncio.wait((task,), timeout=WAIT_S)
    assert task.cancelled() and feed.cancelled.is_set()
    assert await asyncio.to_thread(ended, pump)
    with pytest.raises(BrokenResponseError, match="closed before the last row"):
        await rows.read_next_batch()
    calls.close()


async def test_a_callback_that_fails_closes_the_rows() -> None:
    calls = ThreadedCalls(2)
    feed = Feed(20)
    found, pump = reader(feed)

    def fails(_batch: pa.RecordBatch) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await AsyncReader(found, calls).read_all(fails)
    assert await asyncio.to_thread(ended, pump) and feed.cancelled.is_set()
    calls.close()


async def test_more_readers_than_threads_all_come_to_their_end() -> None:
    calls = ThreadedCalls(2)
    readers = [AsyncReader(reader(Feed(30))[0], calls) for _ in range(10)]
    found = await asyncio.wait_for(asyncio.gather(*(each.read_all() for each in readers)), WAIT_S)
    assert [each.table.num_rows for each in found] == [30] * 10
    calls.close()
