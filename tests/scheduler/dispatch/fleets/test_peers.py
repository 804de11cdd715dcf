"""The peers of an actor fleet, without Ray."""

import asyncio
from typing import Any

import pytest

from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.fleets import ray_fleet
from caraway_scheduler.dispatch.fleets.peers import Peer
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.workers import identity

WELL, ILL = ExecutorId("well"), ExecutorId("ill")


class Remote:
    """Stands for a method of an actor."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def remote(self, *_arguments: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answered.set_result(self._answer)
        return answered


class Actor:
    def __init__(self, answer: Any) -> None:
        self.describe = Remote(answer)


async def test_executor_that_cannot_be_called_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    actors = {WELL: Actor(identity(WELL)), ILL: Actor(TypeError("too many arguments"))}
    found = {ILL: 0}

    def find(known: set[ExecutorId]) -> dict[ExecutorId, Any]:
        found[ILL] += ILL not in known
        return {each: actor for each, actor in actors.items() if each not in known}

    monkeypatch.setattr(ray_fleet, "_find", find)
    fleet = RayFleet("token")
    assert [each.executor_id for each in await fleet.describe()] == [WELL]
    assert list(fleet._peers) == [WELL]
    actors[ILL] = Actor(identity(ILL))
    assert {each.executor_id for each in await fleet.describe()} == {WELL, ILL}
    assert found[ILL] == 2
    assert all(isinstance(peer, Peer) for peer in fleet._peers.values())
    await fleet.aclose()
