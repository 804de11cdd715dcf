"""A scheduler stays while its Ray node ends, and joins again."""

import asyncio
from pathlib import Path

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode
from caraway_core.settings import Address
from caraway_gateway.composition import presence
from caraway_gateway.composition.presence import Presence

OPTIONS = NodeOptions(head=Address("head.test", 1), joins=True, node_ip=None, cores=0,
                      object_store_bytes=0, folder=Path("f"), token_file=Path("t"))  # fmt: skip


class Node:
    """A node that ends when the test ends it."""

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
    """A fleet whose first `failures` joins fail."""

    def __init__(self, log: list[str], failures: int = 0, *, leaves: bool = True) -> None:
        self.joined = asyncio.Event()
        self._log = log
        self._failures = failures
        self._leaves = leaves

    async def leave(self) -> None:
        self._log.append("left")
        self.joined.clear()
        if not self._leaves:
            raise CarawayError("Ray cannot disconnect")

    async def join(self) -> None:
        self._failures -= 1
        if self._failures >= 0:
            raise CarawayError("no answer")
        self._log.append("joined")
        self.joined.set()


class Cluster:
    """The nodes that can be started in turn, and whether the head and another scheduler exist."""

    def __init__(self) -> None:
        self.nodes: list[Node | NodeFailedError] = []
        self.head = asyncio.Event()
        self.others = 0
        """How often another scheduler is still found."""
        self.reachable = False

    async def start(self, _: NodeOptions) -> Node:
        await self.head.wait()
        found = self.nodes.pop(0)
        if isinstance(found, NodeFailedError):
            raise found
        return found

    def member(self, fleet: Fleet) -> Presence:
        return Presence(OPTIONS, fleet, lambda _: self.head.is_set())

    async def is_reachable(self) -> bool:
        return self.reachable

    async def is_other(self) -> bool:
        self.others -= 1
        return self.others >= 0


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(presence, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(presence, "_AWAY_S", 0.02)
    monkeypatch.setattr(presence, "_AWAY_REACHABLE_S", 0.01)
    monkeypatch.setattr(presence, "_LOOK_S", 0.001)
    monkeypatch.setattr(RayNode, "start", made.start)
    return made


AWAY = NodeFailedError("the head is away")


async def test_a_scheduler_outlives_its_node_and_joins_again(
    cluster: Cluster, log: list[str]
) -> None:
    cluster.head.set()
    first, second, third = (Node(log) for _ in range(3))
    cluster.nodes = [AWAY, first]
    fleet = Fleet(log)
    member = cluster.member(fleet)
    await member.join_cluster(cluster.is_reachable, cluster.is_other)
    fleet._failures = 1
    cluster.nodes = [AWAY, AWAY, second, third]
    running = asyncio.ensure_future(member.run())
    first.ended.set()
    while log.count("joined") < 2:
        await asyncio.sleep(0)
    # The second node was started, but the join through it failed.
    assert log == ["joined", "left", "node stopped", "node stopped", "joined"]
    assert not cluster.nodes and not running.done()
    running.cancel()
    await member.aclose()
    assert log[-1] == "node stopped"


async def test_a_head_that_cannot_be_joined_is_reported(cluster: Cluster, log: list[str]) -> None:
    cluster.head.set()
    cluster.nodes = [AWAY] * 20
    with pytest.raises(NodeFailedError):
        await cluster.member(Fleet(log)).join_cluster(cluster.is_reachable, cluster.is_other)
    assert len(cluster.nodes) == 10


async def test_the_last_scheduler_starts_without_the_head_and_joins_later(
    cluster: Cluster, log: list[str]
) -> None:
    cluster.nodes = [Node(log)]
    cluster.others = 2
    fleet = Fleet(log)
    member = cluster.member(fleet)
    await member.join_cluster(cluster.is_reachable, cluster.is_other)
    # It waited as long as there was another one.
    assert cluster.others == -1 and log == []
    running = asyncio.ensure_future(member.run())
    cluster.head.set()
    await fleet.joined.wait()
    assert not running.done()
    running.cancel()
    await member.aclose()
    assert log == ["joined", "node stopped"]


async def test_beside_another_scheduler_a_start_waits_for_the_head(
    cluster: Cluster, log: list[str]
) -> None:
    cluster.nodes = [Node(log)]
    cluster.others = 10**6
    member = cluster.member(Fleet(log))
    beginning = asyncio.ensure_future(member.join_cluster(cluster.is_reachable, cluster.is_other))
    while cluster.others > 10**6 - 3:
        await asyncio.sleep(0)
    assert not beginning.done()
    cluster.head.set()
    await beginning
    assert log == ["joined"]
    await member.aclose()


async def test_with_executors_that_can_be_reached_a_start_waits_for_nobody(
    cluster: Cluster, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "_AWAY_S", 600.0)
    cluster.reachable, cluster.others = True, 10**6
    await cluster.member(Fleet(log)).join_cluster(cluster.is_reachable, cluster.is_other)
    assert cluster.others == 10**6 and log == []


async def test_a_start_that_is_cancelled_leaves_no_node(cluster: Cluster, log: list[str]) -> None:
    cluster.others = 10**6
    beginning = asyncio.ensure_future(
        cluster.member(Fleet(log)).join_cluster(cluster.is_reachable, cluster.is_other)
    )
    while cluster.others == 10**6:
        await asyncio.sleep(0)
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert log == []


async def test_a_process_that_cannot_leave_ray_ends(cluster: Cluster, log: list[str]) -> None:
    cluster.head.set()
    first = Node(log)
    cluster.nodes = [first]
    member = cluster.member(Fleet(log, leaves=False))
    await member.join_cluster(cluster.is_reachable, cluster.is_other)
    first.ended.set()
    with pytest.raises(CarawayError, match="cannot disconnect"):
        await member.run()
    await member.aclose()
