"""The scheduler client against the routes of a real scheduler."""

from pathlib import Path

import httpx
import pytest

from caraway_operator.scaling.draining import release_reason
from caraway_operator.scheduler_client import (
    HttpSchedulerClient,
    OperatorRefusedError,
    SchedulerEndpoint,
)
from caraway_operator.states.progress import ExecutorDrain
from caraway_scheduler.membership.drains import SETTLED_AFTER_S
from tests.gateway.api.internal.operator_requests import TOKEN, operated
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.fleets import FakeFleet

TARGET = SchedulerEndpoint("http://metrics.test", TOKEN)


async def test_an_executor_is_drained_and_then_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fleet = Clock(), FakeFleet("shop-executor-0", "shop-executor-1")
    async with operated(tmp_path, monkeypatch, fleet, clock) as (_, _, client):
        schedulers = HttpSchedulerClient(client)
        assert await schedulers.is_ready(TARGET, 2)
        await schedulers.drain(TARGET, "shop-executor-1")
        assert await schedulers.is_ready(TARGET, 1)
        assert not await schedulers.is_ready(TARGET, 2)
        clock.now += SETTLED_AFTER_S
        drain = ExecutorDrain("shop-executor-1", clock.now)

        async def may_go() -> bool:
            executors = await schedulers.executors(TARGET)
            return bool(release_reason(drain, executors, clock.now, 120))

        await eventually(may_go, "the executor may go")
        await schedulers.undrain(TARGET, "shop-executor-1")

        async def works() -> bool:
            return all(each.is_ready for each in await schedulers.executors(TARGET))

        await eventually(works, "both work again")
        load = await schedulers.load(TARGET)
        assert (load.queued, len(load.memory)) == (0, 2)


async def test_a_wrong_token_and_an_unknown_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (_, _, client):
        schedulers = HttpSchedulerClient(httpx.AsyncClient(transport=client._transport))

        with pytest.raises(OperatorRefusedError, match="does not match the token"):
            await schedulers.executors(SchedulerEndpoint("http://metrics.test", "wrong"))
        await schedulers.drain(TARGET, "nobody")
