"""The supervisor of a cluster, with small programs in place of the processes of the cluster."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from caraway_cluster import plan as plans
from caraway_cluster import process as processes
from caraway_cluster import supervisor as supervisors
from caraway_cluster.folder import ClusterFolder, LocalClusterStatus
from caraway_cluster.plan import ClusterPlan, ProcessSpec
from caraway_cluster.supervisor import ClusterReadiness, ClusterSupervisor
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError
from tests.kit.runtime import running

PLAN = ClusterPlan("m.yaml", 2, 1, 1, 1, 1.0, "127.64.1", 20_000, "", "", "", None, "text")
SERVE = "import os, signal, sys; os.write(int(sys.argv[1]), b'{}\\n'); signal.pause()"
SILENT = "import signal; signal.pause()"
FAIL = "print('no such manifest'); raise SystemExit(3)"

Programs = Callable[[ProcessSpec], str]
BROKEN = """
datasets:
  - {from: "file:gone.csv", name: gone}
"""


class Supervised:
    """A supervisor, the state changes it announced, and what to do at each of them."""

    def __init__(self, folder: ClusterFolder) -> None:
        self.folder = folder
        self.changes: list[tuple[str, str]] = []
        self.on_change: dict[tuple[str, str], Callable[[], None]] = {}
        self.supervisor = ClusterSupervisor(folder, self._announce)
        self.ready: list[LocalClusterStatus] = []
        self.missing = ""

    def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    async def run(self, on_ready: Callable[[], None]) -> None:
        def note(status: LocalClusterStatus, missing: str) -> None:
            self.ready.append(status)
            self.missing = missing
            on_ready()

        await self.supervisor.run_cluster(note)

    def _announce(self, line: str) -> None:
        name, state, *_ = line.split()
        self.changes.append((name, state))
        if action := self.on_change.pop((name, state), None):
            action()

    def names(self, state: str) -> list[str]:
        return [name for name, each in self.changes if each == state]


@pytest.fixture
def supervise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Programs], Supervised]:
    monkeypatch.setattr(supervisors, "_CHECK_S", 0.01)
    monkeypatch.setattr(processes, "_DELAYS", Delays(0.01, 0.01))
    monkeypatch.setattr(supervisors, "ask_readiness", lambda *_: ClusterReadiness(True))
    folder = ClusterFolder(tmp_path)
    (tmp_path / "logs").mkdir()
    folder.write_plan(PLAN)

    def start(programs: Programs) -> Supervised:
        def command(_plan: ClusterPlan, spec: ProcessSpec, _: Path, ready_fd: int) -> list[str]:
            return [sys.executable, "-S", "-c", programs(spec), str(ready_fd)]

        monkeypatch.setattr(plans, "command", command)
        return Supervised(folder)

    return start


def serve(_: ProcessSpec) -> str:
    return SERVE


async def test_the_head_starts_first_and_stops_last(
    supervise: Callable[[Programs], Supervised],
) -> None:
    cluster = supervise(serve)

    await cluster.run(cluster.stop)

    (status,) = cluster.ready
    assert [each.name for each in status.processes] == [
        "head", "scheduler", "executor-1", "executor-2",
    ]  # fmt: skip
    assert all(each.state == "up" and each.pid for each in status.processes)
    head_up = cluster.changes.index(("head", "up"))
    assert cluster.changes[:head_up] == [("head", "starting")]
    assert cluster.names("stopping")[-2:] == ["scheduler", "head"]
    assert set(cluster.names("stopping")[:2]) == {"executor-1", "executor-2"}
    assert all(each.pid is None for each in cluster.supervisor.status.processes)


async def test_a_signal_during_the_start_stops_everything(
    supervise: Callable[[Programs], Supervised],
) -> None:
    cluster = supervise(serve)
    cluster.on_change["executor-1", "starting"] = cluster.stop

    await cluster.run(lambda: None)

    assert cluster.ready == []
    assert all(each.pid is None for each in cluster.supervisor.status.processes)


@pytest.mark.parametrize(("name", "others"), [("head", 0), ("scheduler", 3)])
async def test_a_process_that_keeps_exiting_fails_the_start(
    supervise: Callable[[Programs], Supervised], name: str, others: int
) -> None:
    cluster = supervise(lambda spec: FAIL if spec.name == name else SERVE)

    with pytest.raises(
        CarawayError, match=f"^{name} exited 3 times: .*no such manifest.*see .*log"
    ):
        await cluster.run(lambda: None)

    status = cluster.supervisor.status
    assert len(status.processes) == others + 1
    assert all(each.pid is None for each in status.processes)


async def test_a_process_that_never_becomes_ready_fails_the_start(
    supervise: Callable[[Programs], Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "_READY_S", 0.05)
    cluster = supervise(lambda _: SILENT)

    with pytest.raises(CarawayError, match=r"head is not ready after 0\.05 s: its log is empty"):
        await cluster.run(lambda: None)

    assert all(each.pid is None for each in cluster.supervisor.status.processes)


async def test_a_broken_dataset_does_not_stop_a_cluster_that_serves(
    supervise: Callable[[Programs], Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "dataset gone (error)"
    answers = iter(
        [
            None,
            ClusterReadiness(False, gone),
            ClusterReadiness(True, f"{gone}, dataset slow (initializing)"),
            ClusterReadiness(True, gone),
        ]
    )
    monkeypatch.setattr(supervisors, "ask_readiness", lambda *_: next(answers))
    cluster = supervise(serve)

    await cluster.run(cluster.stop)

    assert cluster.missing == gone
    assert next(answers, "all were used") == "all were used"


async def test_datasets_that_load_for_long_do_not_stop_a_cluster_that_serves(
    supervise: Callable[[Programs], Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "dataset slow (initializing)"
    monkeypatch.setattr(supervisors, "ask_readiness", lambda *_: ClusterReadiness(True, slow))
    monkeypatch.setattr(supervisors, "_LOADING_S", 0.05)
    cluster = supervise(serve)

    await cluster.run(cluster.stop)

    assert cluster.missing == slow


async def test_a_scheduler_without_its_executors_fails_the_start(
    supervise: Callable[[Programs], Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = supervise(serve)

    def ask(*_: object) -> ClusterReadiness:
        cluster.supervisor._deadline = 0.0
        return ClusterReadiness(False)

    monkeypatch.setattr(supervisors, "ask_readiness", ask)
    with pytest.raises(CarawayError, match="scheduler does not have 2 ready executors after 240 s"):
        await cluster.run(lambda: None)


async def test_a_killed_process_is_restarted(
    supervise: Callable[[Programs], Supervised],
) -> None:
    cluster = supervise(serve)

    def kill() -> None:
        pid = next(each.pid for each in cluster.ready[0].processes if each.name == "executor-1")
        assert pid is not None
        cluster.on_change["executor-1", "up"] = cluster.stop
        os.kill(pid, signal.SIGKILL)

    await cluster.run(kill)

    restarts = {each.name: each.restarts for each in cluster.supervisor.status.processes}
    assert restarts == {"head": 0, "scheduler": 0, "executor-1": 1, "executor-2": 0}


async def test_a_changed_plan_adds_and_removes_executors(
    supervise: Callable[[Programs], Supervised],
) -> None:
    cluster = supervise(serve)
    folder = cluster.folder
    cluster.on_change["executor-3", "up"] = lambda: folder.write_plan(PLAN.scaled(1))
    cluster.on_change["executor-3", "stopping"] = cluster.stop

    await cluster.run(lambda: folder.write_plan(PLAN.scaled(3)))

    assert cluster.names("up").count("executor-1") == 1, "it was left alone"
    assert {"executor-2", "executor-3"} <= set(cluster.names("stopping"))
    assert cluster.supervisor.status.executors == 1


async def test_a_failure_of_the_supervisor_itself_stops_the_cluster(
    supervise: Callable[[Programs], Supervised], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(spec: ProcessSpec) -> str:
        if spec.name == "executor-2":
            raise PermissionError("cannot start programs")
        return SERVE

    cluster = supervise(broken)

    with caplog.at_level(logging.ERROR):
        await cluster.run(lambda: None)

    assert "a process is no longer supervised; stopping the cluster" in caplog.messages
    assert all(each.pid is None for each in cluster.supervisor.status.processes)


async def test_components_that_are_not_ready_are_named(tmp_path: Path) -> None:
    async with running(tmp_path, BROKEN) as runtime:
        answer = await runtime.metrics.get("/v1/ready?verbose=true")
    found = supervisors.parse_readiness(answer.text)
    assert found == ClusterReadiness(True, "dataset gone (error)")
    assert not found.is_loading


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("[+] components ok\n[+] executors: 2/2 ready (100%, registered=2, min=2)\nready",
         ClusterReadiness(True)),
        ("[+] components ok\n[-] executors: 1/2 ready (50%, registered=2, min=2)\nnot ready",
         ClusterReadiness(False)),
        ("[-] components not ready: view v (initializing: waits for dataset 'd')\n[-] executors: 0",
         ClusterReadiness(False, "view v (initializing: waits for dataset 'd')")),
    ],
)  # fmt: skip
def test_executors_and_components_are_separate(lines: str, found: ClusterReadiness) -> None:
    assert supervisors.parse_readiness(lines) == found
    assert found.is_loading == ("initializing" in lines)


def test_a_scheduler_that_does_not_answer_has_no_readiness() -> None:
    assert supervisors.ask_readiness("127.0.0.1:1", 2) is None
    assert supervisors.ask_readiness(None, 2) is None
