"""The watch of the cluster that a node joined: which answer of the head ends the node."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from caraway_core.ray_nodes import cluster_watch, gcs_watch, start_hook
from caraway_core.ray_nodes.cluster_watch import CODE, wait_until_gone
from tests.kit.ray_cluster import RayCluster

REFUSED = RuntimeError("RPC error: WrongClusterID: Perhaps the client is accessing GCS after it ..")
SILENT = TimeoutError("Timed out while waiting for GCS to become available.")
_PROGRAM = """
import threading
from caraway_core.ray_nodes import cluster_watch

def ask():
    raise {failure}

cluster_watch.begin(lambda: ask)
threading.Event().wait({wait_s})
"""


def asking(answers: Iterator[BaseException | None]) -> Callable[[], None]:
    def ask() -> None:
        if (failure := next(answers)) is not None:
            raise failure

    return ask


def test_a_node_ends_when_the_head_refuses_its_cluster() -> None:
    answers = iter([None, SILENT, None, REFUSED, None])
    pauses: list[float] = []
    wait_until_gone(asking(answers), pauses.append)
    assert list(answers) == [None]
    assert len(pauses) == 3


def test_a_node_outlives_a_silent_head_and_other_failures() -> None:
    answers = iter([*[SILENT, OSError("connection refused")] * 500, KeyboardInterrupt()])
    pauses: list[float] = []
    with pytest.raises(KeyboardInterrupt):
        wait_until_gone(asking(answers), pauses.append)
    assert len(pauses) == 1000


def test_the_process_ends_with_the_code_and_the_cause() -> None:
    program = _PROGRAM.format(failure="RuntimeError('RPC error: WrongClusterID: ..')", wait_s=60)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == CODE
    assert ended.stderr == "error: the head is that of another cluster\n"


def test_a_defect_of_the_watch_does_not_end_the_node() -> None:
    program = _PROGRAM.format(failure="SystemExit('defect')", wait_s=0.3)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "the watch of the cluster failed: SystemExit('defect')" in ended.stderr


def test_the_cluster_of_a_raylet_is_watched_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(cluster_watch, "begin", lambda connect: begun.append(connect.args))
    start = start_hook._with_cluster_watch(lambda command: command)
    flags = ["--node_ip=h", "--gcs-address=10.0.0.1:6390", "--cluster-id=abc"]
    for program in ("/ray/raylet/raylet", "/ray/other"):
        assert start([program, *flags]) == [program, *flags]
    assert begun == [("10.0.0.1:6390", "abc")]


@pytest.mark.parametrize("is_head", [True, False])
def test_a_head_watches_its_state_server_and_other_nodes_their_cluster(
    monkeypatch: pytest.MonkeyPatch, is_head: bool
) -> None:
    from ray._private import services

    watched: list[str] = []
    monkeypatch.setattr(services, "start_ray_process", lambda *_: None)
    monkeypatch.setattr(cluster_watch, "begin", lambda _: watched.append("cluster"))
    monkeypatch.setattr(gcs_watch, "begin", lambda *_, is_durable: watched.append("gcs"))
    start_hook.prepare(object(), is_head)
    start: Any = services.start_ray_process
    start(["/ray/raylet", "--gcs-address=h:1", "--cluster-id=abc"])
    assert watched == ([] if is_head else ["cluster"])


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_real_head_refuses_the_id_of_another_cluster(cluster: RayCluster) -> None:
    ask = start_hook._asking_for(str(cluster.head_address), "0f" * 28)
    wait_until_gone(ask, lambda _: pytest.fail("the head answered, or with another failure"))
