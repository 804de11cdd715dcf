"""The operator's questions, answered by the routes of a real scheduler."""

from pathlib import Path

import httpx
import pytest

from caraway_operator.scaling.draining import Drain, Scene, decide
from caraway_operator.scheduler_link import HttpLink, LinkError, Target
from caraway_scheduler.membership.drains import SETTLED_AFTER_S
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.fleets import FakeFleet
from tests.scheduler.api.internal.test_routes import TOKEN, operated

TARGET = Target("http://metrics.test", TOKEN)


async def test_an_executor_is_drained_and_then_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fleet = Clock(), FakeFleet("shop-executor-0", "shop-executor-1")
    async with operated(tmp_path, monkeypatch, fleet, clock) as (_, _, client):
        link = HttpLink(client)
        assert await link.is_ready(TARGET, 2)
        await link.drain(TARGET, "shop-executor-1")
        assert await link.is_ready(TARGET, 1)
        assert not await link.is_ready(TARGET, 2)
        clock.now += SETTLED_AFTER_S
        drain = Drain("shop-executor-1", clock.now)

        async def may_go() -> bool:
            executors = await link.executors(TARGET)
            scene = Scene(clock.now, 1, 2, 2, "shop-executor", drain, executors, 120)
            return decide(scene).replicas == 1

        await eventually(may_go, "the executor may go")
        await link.undrain(TARGET, "shop-executor-1")

        async def works() -> bool:
            return all(each.is_ready for each in await link.executors(TARGET))

        await eventually(works, "both work again")
        load = await link.load(TARGET)
        assert (load.queued, len(load.memory)) == (0, 2)


async def test_a_wrong_token_and_an_unknown_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operated(tmp_path, monkeypatch, FakeFleet("a"), Clock()) as (_, _, client):
        link = HttpLink(httpx.AsyncClient(transport=client._transport))

        with pytest.raises(LinkError, match="401"):
            await link.executors(Target("http://metrics.test", "wrong"))
        await link.drain(TARGET, "nobody")
