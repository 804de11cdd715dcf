"""An executor joins its cluster, joins it again when it is lost, and leaves it in order."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.process import exiting
from caraway_core.protocols.fleet import Description
from caraway_core.protocols.wire import ActorStatus
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.settings import Address
from caraway_engine.execution.settings import EngineSettings
from caraway_executor import supervisor
from caraway_executor.keeper import ActorFailedError
from caraway_executor.supervisor import Supervisor

IDENTITY = Description(ExecutorId("e"), "", PROTOCOL_VERSION, "build", "here", 1, 0)


class _Cluster:
    """Ray, its nodes and the actor: the events are noted in order.

    `script` has the event of each life of the executor: "node" and "deploy" fail to start, "gone"
    is a node that ends before its actor is up, "late" an actor that is never up, "lost" a node that
    ends, "hung" an actor that does not answer, and "stop" a signal.
    """

    def __init__(self, *script: str) -> None:
        self.events: list[str] = []
        self.active = 0
        self.stop_after_looks = 2
        self._script = list(script)
        self._life = ""
        self._looks = 0
        self.stop: Any = None

    async def start(self, _options: NodeOptions) -> "_Node":
        self._life = self._script.pop(0)
        self._looks = 0
        self.events.append(f"start {self._life}")
        if self._life == "node":
            raise NodeFailedError("no node")
        if self._life == "stop while joining":
            self.stop()
            await asyncio.Event().wait()
        return _Node(self)

    def join(self, *_given: object) -> None:
        self.events.append("join")

    def deploy(self, *_given: object) -> None:
        if self._life == "deploy":
            raise ActorFailedError("no actor")
        self.events.append("deploy")

    def described(self, _within_s: float) -> Description | None:
        return None if self._life in ("gone", "late") else IDENTITY

    def standing(self, _within_s: float) -> ActorStatus:
        self._looks += 1
        if self._life == "hung":
            raise ActorFailedError("no answer")
        if self._life == "stop" and self._looks == self.stop_after_looks:
            self.stop()
        if "drain" in self.events and self.active:
            self.active -= 1
            if self._script == ["stop again"] and self.active == 2:
                self._script.clear()
                self.stop()
        return ActorStatus(replace(IDENTITY, active_tasks=self.active))

    def drain(self, _within_s: float) -> None:
        self.events.append("drain")
        if self._life == "stop" and self._script == ["drain fails"]:
            raise ActorFailedError("away")

    def end(self) -> None:
        self.events.append("end")

    def leave(self) -> None:
        self.events.append("leave")

    @property
    def is_lost(self) -> bool:
        return self._life in ("gone", "lost")


class _Node:
    pid = 1

    def __init__(self, cluster: _Cluster) -> None:
        self._cluster = cluster

    async def wait(self) -> int:
        if not self._cluster.is_lost:
            await asyncio.Event().wait()
        return 9

    async def stop(self) -> None:
        self._cluster.events.append("node stopped")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_CHECK_S", 0.0)
    monkeypatch.setattr(supervisor, "_HUNG_S", -1.0)
    monkeypatch.setattr(supervisor, "_DELAYS", Delays(0.0, 0.0))

    async def unless_gone(work: Any, _head: Address) -> bool:
        await work
        return True

    monkeypatch.setattr(exiting, "unless_gone", unless_gone)


async def _run(
    cluster: _Cluster, monkeypatch: pytest.MonkeyPatch, folder: Path, **options: Any
) -> Supervisor:
    monkeypatch.setattr(RayNode, "start", cluster.start)
    monkeypatch.setattr(supervisor, "ActorKeeper", lambda _id: cluster)
    monkeypatch.setattr(Supervisor, "_listen", lambda _self: None)
    made = Supervisor(
        NodeOptions(Address("head", 1), True, None, 1, 0, folder, folder / "token"),
        IDENTITY,
        EngineSettings(1, None),
        folder / "files",
        options.get("drain_timeout_s", 60.0),
        options.get("ready_fd"),
    )
    loop = asyncio.get_running_loop()
    cluster.stop = lambda: loop.call_soon_threadsafe(made._on_stop_signal)
    await made.run()
    return made


LIFE = ["join", "deploy"]
LEFT = ["leave", "node stopped"]


async def test_a_signal_drains_ends_and_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("stop")
    cluster.active = 3
    made = await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events == ["start stop", *LIFE, "drain", "end", *LEFT]
    assert cluster.active == 0
    assert made.seen.standing is None


async def test_it_joins_again_whatever_it_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("node", "deploy", "lost", "hung", "stop")
    await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events == [
        "start node",
        *("start deploy", "join", *LEFT),
        *("start lost", *LIFE, *LEFT),
        *("start hung", *LIFE, *LEFT),
        *("start stop", *LIFE, "drain", "end", *LEFT),
    ]


async def test_it_waits_for_an_actor_as_long_as_its_node_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = _Cluster("gone", "stop")
    await _run(cluster, monkeypatch, tmp_path)
    monkeypatch.setattr(supervisor, "_DEPLOY_S", 0.0)
    late = _Cluster("late", "stop")
    await _run(late, monkeypatch, tmp_path)
    causes = [each.cause for each in caplog.records if hasattr(each, "cause")]
    assert causes == ["the Ray node ended with exit code 9", "the actor is not up after 0 s"]
    assert cluster.events[:5] == ["start gone", *LIFE, *LEFT]
    assert late.events[:5] == ["start late", *LIFE, *LEFT]


async def test_a_signal_while_it_joins_ends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("stop while joining")
    await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events == ["start stop while joining"]


async def test_it_does_not_wait_for_work_longer_than_it_may(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("stop")
    cluster.active = 10**6
    await _run(cluster, monkeypatch, tmp_path, drain_timeout_s=0.0)
    assert cluster.events[-4:] == ["drain", "end", *LEFT]
    assert cluster.active > 10**6 - 5


async def test_an_actor_that_cannot_drain_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("stop", "drain fails")
    await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events[-4:] == ["drain", "end", *LEFT]


async def test_a_second_signal_ends_the_wait_for_running_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = _Cluster("stop", "stop again")
    cluster.active = 4
    await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events[-4:] == ["drain", "end", *LEFT]
    assert cluster.active > 0


async def test_it_says_once_that_it_is_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    cluster = _Cluster("lost", "stop")
    await _run(cluster, monkeypatch, tmp_path, ready_fd=writing)
    with os.fdopen(reading) as pipe:
        (line,) = pipe.read().splitlines()
    assert json.loads(line) == {"executor_id": "e", "metrics": ""}


async def test_a_lost_cluster_that_ray_does_not_leave_ends_the_executor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ray has one connection for each process, so it cannot join another cluster."""
    cluster = _Cluster("lost", "stop")
    waiting = asyncio.Event()

    async def to_thread(work: Any, *given: Any) -> Any:
        if getattr(work, "__name__", "") == "leave":
            await waiting.wait()
        return work(*given)

    monkeypatch.setattr(supervisor, "_LEAVE_S", 0.0)
    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    with pytest.raises(CarawayError, match="restart the executor"):
        await _run(cluster, monkeypatch, tmp_path)
    assert cluster.events[-1] == "node stopped"
