"""The peers of an actor fleet, without Ray."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutorLostError, PartLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import ExchangePart, Input
from caraway_scheduler.dispatch.fleets import ray_fleet
from caraway_scheduler.dispatch.fleets.parts import Held
from caraway_scheduler.dispatch.fleets.peers import Peer, send
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.fragments import task
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

    monkeypatch.setattr(ray_fleet, "find", find)
    fleet = RayFleet("token")
    assert [each.executor_id for each in await fleet.describe()] == [WELL]
    assert list(fleet._peers) == [WELL]
    actors[ILL] = Actor(identity(ILL))
    assert {each.executor_id for each in await fleet.describe()} == {WELL, ILL}
    assert found[ILL] == 2
    assert all(isinstance(peer, Peer) for peer in fleet._peers.values())
    await fleet.aclose()


async def test_a_heartbeat_without_an_answer_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[asyncio.Future[Any]] = []

    class Describe:
        def remote(self, *_arguments: Any) -> Any:
            asked.append(asyncio.get_running_loop().create_future())
            if len(asked) > 1:  # By then the connection is another one.
                asked[-1].set_result(identity(WELL))
            return asked[-1]

    actor = Actor(None)
    actor.describe = Describe()  # type: ignore[assignment] # it stands for a method
    monkeypatch.setattr(ray_fleet, "find", lambda known: {} if known else {WELL: actor})
    monkeypatch.setattr(ray_fleet, "ANSWER_S", 0.01)
    fleet = RayFleet("token")
    assert [await fleet.describe() for _ in range(3)] == [[], [], []]
    assert len(asked) == 1, "a paused process would answer all of them at once"
    monkeypatch.setattr(ray_fleet, "_ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(ray_fleet, "ANSWER_S", 5.0)
    assert [each.executor_id for each in await fleet.describe()] == [WELL]
    assert len(asked) == 2
    await fleet.aclose()


class Calls:
    """An actor that never answers, and remembers the cancelled calls."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.open_task = Silent()
        self.cancel = self

    def remote(self, call: str) -> None:
        self.cancelled.append(call)


class Silent:
    def __init__(self) -> None:
        self.called = asyncio.Event()

    def remote(self, *_arguments: Any) -> "asyncio.Future[Any]":
        self.called.set()
        return asyncio.get_running_loop().create_future()


async def test_a_call_that_waits_for_rows_of_a_lost_executor_ends() -> None:
    """Ray needs longer than heartbeats to know that a node is lost, and its caller waits."""
    loop, fleet, actor = asyncio.get_running_loop(), RayFleet("token"), Calls()
    fleet._peers = {
        WELL: Peer(WELL, actor, loop.create_future()),
        ILL: Peer(ILL, Calls(), loop.create_future()),
    }
    part = ExchangePart(Held(object(), fleet._peers[ILL].gone), ILL, 1, 1)
    inputs = [Input("x", pa.schema([]), (part,))]
    calling = asyncio.ensure_future(fleet.stream(WELL, task("SELECT 1", {}), inputs))
    await actor.open_task.called.wait()
    fleet.lost(ILL)
    with pytest.raises(PartLostError, match="executor 'ill' was lost with rows") as caught:
        await calling
    assert caught.value.executor_id == ILL
    assert len(actor.cancelled) == 1
    # Rows that were lost before are not sent to anybody, nor read here.
    actor.open_task.called.clear()
    for again in (fleet.stream(WELL, task("SELECT 1", {}), inputs), fleet.fetch(inputs)):
        with pytest.raises(PartLostError):
            await again
    assert not actor.open_task.called.is_set()
    await fleet.aclose()


async def test_what_nobody_waits_for_may_fail() -> None:
    send(Remote(RuntimeError("Ray has been shut down")), "call")


async def test_a_call_at_a_lost_executor_is_lost_with_it_and_its_rows() -> None:
    loop, fleet, actor = asyncio.get_running_loop(), RayFleet("token"), Calls()
    fleet._peers = {WELL: Peer(WELL, actor, loop.create_future())}
    part = ExchangePart(Held(object(), fleet._peers[WELL].gone), WELL, 1, 1)
    inputs = [Input("x", pa.schema([]), (part,))]
    calling = asyncio.ensure_future(fleet.stream(WELL, task("SELECT 1", {}), inputs))
    await actor.open_task.called.wait()
    fleet.lost(WELL)
    with pytest.raises(ExecutorLostError):
        await calling
    await fleet.aclose()
