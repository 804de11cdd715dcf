"""A scheduler stays while its Ray node ends, and joins again."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from caraway_core.backoff import Delays
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode
from caraway_core.settings import Address
from caraway_scheduler.composition import presence
from caraway_scheduler.composition.presence import Presence

OPTIONS = NodeOptions(head=Address("head.test", 1), joins=True, node_ip=None, cores=0,
                      object_store_bytes=0, folder=Path("f"), token_file=Path("t"))  # fmt: skip


class Node:
    """A node that ends when it is told to."""

    output = Path("ray.log")

    def __init__(self, log: list[str]) -> None:
        self.ended = asyncio.Event()
        self._log = log

    async def wait(self) -> int:
        await self.ended.wait()
        return 1

    async def stop(self) -> None:
        self._log.append("node stopped")


class Fleet:
    """A fleet whose joins fail as often as it is told to."""

    def __init__(self, log: list[str], failures: int = 0, *, leaves: bool = True) -> None:
        self.joined = asyncio.Event()
        self._log = log
        self._failures = failures
        self._leaves = leaves

    async def leave(self) -> None:
        self._log.append("left")
        if not self._leaves:
            raise CarawayError("Ray cannot disconnect")

    async def rejoin(self) -> None:
        self._failures -= 1
        if self._failures >= 0:
            raise CarawayError("no answer")
        self._log.append("joined")
        self.joined.set()


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Node | NodeFailedError]:
    made: list[Node | NodeFailedError] = []
    monkeypatch.setattr(presence, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(RayNode, "start", starting(made))
    return made


def starting(
    left: list[Node | NodeFailedError],
) -> Callable[[NodeOptions], Coroutine[None, None, Node]]:
    async def start(_: NodeOptions) -> Node:
        found = left.pop(0)
        if isinstance(found, NodeFailedError):
            raise found
        return found

    return start


async def test_a_scheduler_outlives_its_node_and_joins_again(
    nodes: list[Node | NodeFailedError], log: list[str]
) -> None:
    first, second, third = (Node(log) for _ in range(3))
    away = NodeFailedError("the head is away")
    nodes[:] = [away, first, away, away, away, second, third]
    member, fleet = Presence(OPTIONS), Fleet(log, failures=1)
    await member.start(attempts=2)
    running = asyncio.ensure_future(member.run(fleet))
    first.ended.set()
    await fleet.joined.wait()
    # The second node was started, but the join through it failed.
    assert log == ["left", "node stopped", "node stopped", "joined"]
    assert not nodes and not running.done()
    running.cancel()
    await member.aclose()
    assert log[-1] == "node stopped"


async def test_a_first_start_has_a_number_of_attempts(
    nodes: list[Node | NodeFailedError],
) -> None:
    nodes[:] = [NodeFailedError("the head is away")] * 4
    with pytest.raises(NodeFailedError):
        await Presence(OPTIONS).start(attempts=3)
    assert len(nodes) == 1


async def test_a_process_that_cannot_leave_ray_ends(
    nodes: list[Node | NodeFailedError], log: list[str]
) -> None:
    first = Node(log)
    nodes[:] = [first]
    member = Presence(OPTIONS)
    await member.start()
    first.ended.set()
    with pytest.raises(CarawayError, match="cannot disconnect"):
        await member.run(Fleet(log, leaves=False))
    await member.aclose()
