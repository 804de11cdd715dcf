"""The way from threads to the loop: results, errors, clients that go away, closing."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from caraway_core.errors import NotFoundError, QueryCancelledError, ShuttingDownError
from caraway_serving.flight.bridge import Bridge


class Context:
    """The context of a call, whose client is there until it goes away."""

    def __init__(self) -> None:
        self.is_gone = threading.Event()

    def is_cancelled(self) -> bool:
        return self.is_gone.is_set()


class Waiting:
    """Work that waits until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def work(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def run(bridge: Bridge, work: Coroutine[Any, Any, Any], context: Any = None) -> Any:
    return await asyncio.to_thread(bridge.run_work, work, context or Context())


async def test_results_and_errors_cross_to_the_thread() -> None:
    bridge = Bridge(asyncio.get_running_loop())

    async def good() -> int:
        return 7

    async def bad() -> int:
        raise NotFoundError("nothing here")

    assert await run(bridge, good()) == 7
    with pytest.raises(NotFoundError, match="nothing here"):
        await run(bridge, bad())


async def test_work_of_a_client_that_goes_away_is_cancelled() -> None:
    bridge, waiting, context = Bridge(asyncio.get_running_loop()), Waiting(), Context()
    call = asyncio.ensure_future(run(bridge, waiting.work(), context))
    await asyncio.to_thread(waiting.begun.wait, 60)
    context.is_gone.set()
    with pytest.raises(QueryCancelledError, match="the client went away"):
        await call
    assert await asyncio.to_thread(waiting.cancelled.wait, 60)


async def test_closing_lets_every_thread_go() -> None:
    bridge = Bridge(asyncio.get_running_loop())
    works = [Waiting() for _ in range(4)]
    calls = [asyncio.ensure_future(run(bridge, each.work())) for each in works]
    for each in works:
        await asyncio.to_thread(each.begun.wait, 60)
    bridge.close()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in found] == [ShuttingDownError] * 4
    for each in works:
        assert await asyncio.to_thread(each.cancelled.wait, 60)


async def test_work_that_is_cancelled_on_the_loop_ends_the_call() -> None:
    bridge = Bridge(asyncio.get_running_loop())

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ShuttingDownError, match="shutting down"):
        await run(bridge, cancelled())


def test_without_a_loop_there_is_an_error_and_nothing_is_left_behind() -> None:
    loop = asyncio.new_event_loop()
    bridge = Bridge(loop)
    loop.close()
    waiting = Waiting()
    with pytest.raises(ShuttingDownError):
        bridge.run_work(waiting.work(), Context())
    bridge.post(lambda: None)
    assert not waiting.begun.is_set()


async def test_actions_are_done_on_the_loop() -> None:
    bridge, done = Bridge(asyncio.get_running_loop()), asyncio.Event()
    await asyncio.to_thread(bridge.post, done.set)
    await asyncio.wait_for(done.wait(), 60)
