"""Runs the containers of the rendered chart as processes of this machine."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from caraway_core.settings import Address
from examples import make_data
from tests.kit import helm, pods
from tests.kit.balancing import KeptClient, balancing
from tests.kit.deadlines import eventually, until
from tests.kit.kubelet_probes import REFUSED, Kubelet, kubelet
from tests.kit.pods import Pods
from tests.kit.processes import command_lines
from tests.kit.ray_cluster import assert_nothing_left, descendants

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
START_S = 240
# A size for laptops, with less memory than a real executor.
SMALL = {"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}
EXECUTOR = {**SMALL, "replicas": 2, "drainTimeoutSeconds": 20}
VALUES = {
    "operator": {"enabled": False},
    "cluster": {"spec": {"executor": EXECUTOR, "scheduler": {**SMALL, "replicas": 2}}},
}
PODS = (
    ("state", 0),
    ("head", 0),
    ("scheduler", 0),
    ("scheduler", 1),
    ("executor", 0),
    ("executor", 1),
)
HEAD = "caraway-head-0-head"
QUERY = "SELECT region, year, orders FROM revenue_by_region ORDER BY region, year"


def get(url: str) -> httpx.Response | None:
    try:
        return httpx.get(url, timeout=60)
    except httpx.TransportError:
        return None


def is_ok(url: str) -> bool:
    answer = get(url)
    return answer is not None and answer.status_code == 200


@dataclass(frozen=True, slots=True)
class Started:
    """A cluster, and what a kubelet saw while it started."""

    pods: Pods
    seen: Kubelet


@pytest.fixture(scope="module")
def started() -> Iterator[Started]:
    """Start the pods of a cluster with two schedulers and two executors."""
    # The path of a Unix socket has at most 107 characters. pytest's folders can be longer.
    with tempfile.TemporaryDirectory(prefix="pods-") as made:
        folder, mark = Path(made), uuid.uuid4().hex
        sample = folder / "sample"
        make_data.write(sample, force=True)
        with pods.pods(folder, helm.render(VALUES), "127.83", sample, mark) as of:
            with kubelet() as seen:
                for component, ordinal in PODS:
                    of.start(component, ordinal)
                    seen.look_after(of, component, ordinal)
                come_up(of)
                until(lambda: seen.started == set(of.processes), "startup probes pass", START_S)
            yield Started(of, seen)
        assert_nothing_left(mark)


@pytest.fixture
def cluster(started: Started) -> Pods:
    return started.pods


def metrics(cluster: Pods, scheduler: int = 0) -> str:
    return f"http://{cluster.address(f'caraway-scheduler-{scheduler}')}:9090"


def come_up(cluster: Pods) -> None:
    """Wait until both schedulers know of two executors that are ready."""

    def is_up() -> bool:
        for name, process in cluster.processes.items():
            assert process.poll() is None, f"{name} ended:\n{cluster.log(name)}"
        ready = "/v1/ready?min_ready_executors=2"
        return all(is_ok(metrics(cluster, number) + ready) for number in (0, 1))

    until(is_up, "two executors are ready", START_S)


def test_a_healthy_start_has_few_events(started: Started) -> None:
    print(f"probes that failed in the start: {Counter(started.seen.unhealthy)}")
    assert not started.seen.killed
    # Before a process listens, the number is that of its time to start; then probes wait for it.
    assert {reason for _, reason in started.seen.unhealthy} <= {REFUSED, "no answer in time"}


def test_rendered_pods_become_a_cluster_that_answers(cluster: Pods) -> None:
    come_up(cluster)
    api = f"http://{cluster.address('caraway-scheduler-0')}:8090"
    executor = f"http://{cluster.address('caraway-executor-0')}:9090"
    # The routes of the probes.
    assert is_ok(f"{metrics(cluster)}/health")
    assert is_ok(f"{executor}/health")
    # The executor's own process asks its actor apart from the schedulers.
    until(lambda: is_ok(f"{executor}/v1/ready"), "the executor says that it is ready", 60)

    answer = httpx.post(f"{api}/v1/sql", content=QUERY, timeout=60)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()) == 20
    # The result of a job is written to the result store next to Redis, and read from it.
    job = httpx.post(f"{api}/v1/queries", json={"sql": QUERY}, timeout=60).json()
    until(
        lambda: httpx.get(f"{api}/v1/queries/{job['query_id']}/status", timeout=60).json()[
            "status"
        ] == "SUCCEEDED",
        "the job has succeeded", 60,
    )  # fmt: skip
    result = httpx.get(f"{api}/v1/queries/{job['query_id']}", timeout=60).json()
    assert result["manifest"]["total_row_count"] == 20, json.dumps(result)[:500]
    stored = list((cluster.folder / "caraway-state-0" / "store").rglob("*.arrow"))
    assert stored, "the store holds no chunk"


async def test_replacing_a_scheduler_fails_no_request(cluster: Pods) -> None:
    """Clients keep connections and do not retry; the balancer knows a pod while it is ready."""
    come_up(cluster)
    backends = [Address(cluster.address(f"caraway-scheduler-{n}"), 8090) for n in (0, 1)]
    async with balancing(backends) as balancer, asyncio.TaskGroup() as group:
        url = f"http://127.0.0.1:{balancer.port}/v1/sql"
        clients = [KeptClient(url, QUERY, pause_s) for pause_s in (0.0, 0.05, 0.2, 0.5) * 2]
        running = [group.create_task(client.run()) for client in clients]

        async def answered() -> None:
            before = [client.answers for client in clients]

            async def have_two_more() -> bool:
                return all(c.answers > n + 1 for c, n in zip(clients, before, strict=True))

            await eventually(have_two_more, "each client has two more answers")

        async def closed() -> bool:
            return any(client.closes for client in clients)

        await answered()
        process = cluster.processes.pop("caraway-scheduler-0-scheduler")
        process.terminate()
        # The endpoints change a moment after the signal.
        await eventually(closed, "a connection is closed")
        balancer.backends = backends[1:]
        assert await asyncio.to_thread(process.wait, 60) == 0
        cluster.start("scheduler")
        probe = metrics(cluster) + "/v1/ready?probe=pod&min_ready_executors=1&wait=50"
        await asyncio.to_thread(until, lambda: is_ok(probe), "the new one serves", START_S)
        balancer.backends = backends
        await answered()
        for task in running:
            task.cancel()

    assert [failure for client in clients for failure in client.failures] == []
    assert sum(client.closes for client in clients) >= len(clients) // 2


def head_processes(cluster: Pods, title: str) -> list[int]:
    found = descendants(cluster.processes[HEAD].pid)
    return [pid for pid, line in found.items() if title in line]


def is_up_at(cluster: Pods, port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection((cluster.address(HEAD[:-5]), port), 1),
    ):
        return True
    return False


@pytest.mark.parametrize("stopped", ["gcs_server", "caraway-head"])
def test_a_head_that_hangs_is_restarted(cluster: Pods, stopped: str) -> None:
    """The watch restarts the node of a stopped state server, a kubelet a stopped `caraway head`."""
    come_up(cluster)
    url = f"http://{cluster.address('caraway-scheduler-0')}:8090/v1/sql"
    before = cluster.processes[HEAD]
    [server] = head_processes(cluster, "gcs_server")
    with kubelet() as seen:
        seen.look_after(cluster, "head")
        until(lambda: seen.started, "the head is probed", START_S)
        began = time.monotonic()
        os.kill(server if stopped == "gcs_server" else before.pid, signal.SIGSTOP)

        def is_replaced() -> bool:
            assert httpx.post(url, content=QUERY, timeout=60).status_code == 200
            found = head_processes(cluster, "gcs_server")
            return bool(found) and server not in found

        until(is_replaced, "another state server runs", START_S)
        noticed_s = time.monotonic() - began
        until(lambda: is_up_at(cluster, cluster.ports[6390]), "it listens", START_S)
        back_s = time.monotonic() - began
        print(f"{stopped}: replaced after {noticed_s:.0f} s, back after {back_s:.0f} s")
        come_up(cluster)
    is_killed = stopped != "gcs_server"
    assert seen.killed == ([HEAD] if is_killed else [])
    assert (cluster.processes[HEAD] is before) is not is_killed
    assert httpx.post(url, content=QUERY, timeout=60).status_code == 200


def test_the_password_of_the_redis_is_on_no_command_line(cluster: Pods) -> None:
    come_up(cluster)
    secret = helm.the(cluster.found, "Secret", "caraway-state")
    password = base64.b64decode(secret["data"]["password"]).decode()

    lines = command_lines()

    assert len(password) > 16
    assert [line for line in lines if "gcs_server" in line]
    assert not [line for line in lines if password in line]


def test_a_deleted_cluster_ends_within_the_grace_of_its_pods(
    cluster: Pods, record_property: Callable[[str, object], None]
) -> None:
    come_up(cluster)

    endings = cluster.delete()

    for name, each in endings.items():
        record_property(name, round(each.after_s, 1))
    print({name: round(each.after_s, 1) for name, each in endings.items()})
    assert len(endings) == 7
    assert {name: each for name, each in endings.items() if each.after_s >= each.grace_s} == {}
    assert {name: each.code for name, each in endings.items() if each.code != 0} == {}
