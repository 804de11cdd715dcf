import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from caraway_core.errors import CarawayError
from caraway_operator.watching.controller import Controller
from caraway_operator.watching.resource_cache import Key
from tests.kit.deadlines import eventually


@asynccontextmanager
async def running(look: Callable[[Key], Awaitable[float | None]]) -> AsyncIterator[Controller]:
    controller = Controller(look, time.monotonic, workers=2)
    task = asyncio.create_task(controller.run_workers())
    try:
        yield controller
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_burst_of_changes_is_reconciled_once() -> None:
    seen: list[Key] = []
    done = asyncio.Event()

    async def look(which: Key) -> float | None:
        seen.append(which)
        if which == ("web", "last"):
            done.set()
        return None

    async with running(look) as controller:
        for _ in range(20):
            controller.enqueue("web", "shop", 0.05)
        controller.enqueue("web", "last", 0.1)
        await asyncio.wait_for(done.wait(), 60)

    assert seen.count(("web", "shop")) == 1


async def test_a_cluster_is_reconciled_by_one_worker_at_a_time() -> None:
    under_way, most = 0, 0
    reconciles = 0
    go = asyncio.Event()

    async def look(_: Key) -> float | None:
        nonlocal under_way, most, reconciles
        under_way += 1
        most = max(most, under_way)
        await go.wait()
        under_way -= 1
        reconciles += 1
        return None

    async with running(look) as controller:
        controller.enqueue("web", "shop", 0)

        async def begun() -> bool:
            return under_way == 1

        await eventually(begun, "the first look has begun")
        controller.enqueue("web", "shop", 0)
        go.set()

        async def twice() -> bool:
            return reconciles == 2

        await eventually(twice, "the change meanwhile is looked at")
    assert most == 1


async def test_a_cluster_is_requeued_after_the_returned_time() -> None:
    reconciles = 0
    done = asyncio.Event()

    async def look(_: Key) -> float | None:
        nonlocal reconciles
        reconciles += 1
        if reconciles == 3:
            done.set()
            return None
        return 0.01

    async with running(look) as controller:
        controller.enqueue("web", "shop", 0)
        await asyncio.wait_for(done.wait(), 60)


@pytest.mark.parametrize("error", [CarawayError("the API is away"), ZeroDivisionError()])
async def test_a_failed_cluster_is_retried_and_does_not_stop_others(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    failures = 0
    done = asyncio.Event()

    async def look(which: Key) -> float | None:
        nonlocal failures
        if which == ("web", "good"):
            return None
        failures += 1
        if failures == 2:
            done.set()
        raise error

    async with running(look) as controller:
        controller.enqueue("web", "bad", 0)
        controller.enqueue("web", "good", 0)
        await asyncio.wait_for(done.wait(), 60)

    assert "cannot reconcile the cluster" in caplog.text
