"""The watch of the cluster that a node joined: which answer of the head ends the node."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core.ray_nodes import (
    NodeFailedError,
    NodeOptions,
    RayNode,
    cluster_watch,
    gcs_watch,
    start_hook,
)
from caraway_core.ray_nodes.cluster_watch import CODE, wait_until_gone
from tests.kit import other_cluster
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


class _Node:
    """A node of Ray: it has the id of its cluster once it connected."""

    gcs_address = "10.0.0.1:6390"
    cluster_id: bytes

    def connect(self) -> None:
        self.cluster_id = b"\xab"


def test_the_cluster_is_watched_as_soon_as_its_id_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(cluster_watch, "begin", lambda connect: begun.append(connect.args))
    start_hook._with_cluster_watch(_Node.connect)(_Node())
    assert begun == [("10.0.0.1:6390", "ab")]


@pytest.mark.parametrize("is_head", [True, False])
def test_a_head_watches_its_state_server_and_other_nodes_their_cluster(
    monkeypatch: pytest.MonkeyPatch, is_head: bool
) -> None:
    from ray._private import node, services

    watched: list[str] = []
    started = SimpleNamespace(process=None)
    monkeypatch.setattr(services, "start_ray_process", lambda *_: started)
    monkeypatch.setattr(node.Node, "_init_gcs_client", _Node.connect)
    monkeypatch.setattr(cluster_watch, "begin", lambda _: watched.append("cluster"))
    monkeypatch.setattr(gcs_watch, "begin", lambda *_, is_durable: watched.append("gcs"))
    start_hook.prepare(object(), is_head)
    start: Any = services.start_ray_process
    start(["/ray/gcs_server", "--node-ip-address=h", "--gcs_server_port=1"])
    connect: Any = node.Node._init_gcs_client
    connect(_Node())
    assert watched == (["gcs"] if is_head else ["cluster"])


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_real_head_refuses_the_id_of_another_cluster(cluster: RayCluster) -> None:
    ask = start_hook._asking_for(str(cluster.head_address), other_cluster.CLUSTER)
    wait_until_gone(ask, lambda _: pytest.fail("the head answered, or with another failure"))


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_a_node_that_starts_ends_when_its_head_is_replaced(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It knows the id of the cluster of before, and Ray would ask for 40 s more."""
    monkeypatch.setattr(start_hook, "HOOK", "tests.kit.other_cluster.prepare")
    options = NodeOptions(
        head=cluster.head_address, joins=True, node_ip=f"{cluster.network}.90", cores=0,
        object_store_bytes=0, folder=tmp_path / "ray", token_file=cluster.token,
    )  # fmt: skip
    with pytest.raises(NodeFailedError, match="the head is that of another cluster"):
        await RayNode.start(options)
