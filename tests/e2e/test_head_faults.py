"""Crashes of a scheduler or the head of a real cluster with its state in a Valkey."""

import os
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    BOUND_S,
    LONG,
    QUICK,
    WIDE,
    WIDE_ROWS,
    Answer,
    FaultCluster,
    Load,
    Served,
    fault_cluster,
    loaded,
)
from tests.kit.ray_cluster import Process, descendants

RAY_START = ["-u", "-m", "caraway_core.ray_nodes.ray_start"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server() -> Iterator[valkey.Server]:
    with valkey.serving(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def shared(
    server: valkey.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultCluster]:
    with (
        fault_cluster(tmp_path_factory.mktemp("h"), 2, server.tcp_url) as cluster,
    ):
        yield cluster


@pytest.fixture
def cluster(shared: FaultCluster) -> FaultCluster:
    shared.served.until_ready(2)
    return shared


def incarnations(cluster: FaultCluster) -> dict[str, str]:
    """Return the incarnations of executors; those of earlier tests may be listed as lost."""
    listed = cluster.served.executors().items()
    return {name: str(each["incarnation"]) for name, each in listed if each["state"] != "lost"}


def test_executors_wait_for_a_killed_scheduler_and_serve_the_next(cluster: FaultCluster) -> None:
    before = incarnations(cluster)
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e1", "e2")
    cluster.of.schedulers["s1"].kill()
    with pytest.raises(httpx.TransportError):
        query.result(BOUND_S)
    began = time.monotonic()
    cluster.served = cluster.serve("s1")
    cluster.served.until_ready(2)
    print(f"scheduler back after {time.monotonic() - began:.1f} s")
    assert incarnations(cluster) == before
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    until(lambda: not any(each["active_tasks"] for each in cluster.served.executors().values()),
          "what ran for the killed scheduler has ended", BOUND_S)  # fmt: skip


def test_one_scheduler_continues_when_the_other_is_killed(cluster: FaultCluster) -> None:
    second = cluster.serve("s2")
    second.until_ready(2)
    assert second.executors().keys() == cluster.served.executors().keys()
    with loaded(second, QUICK) as load:
        query = cluster.served.begin(LONG)
        cluster.served.until_busy("e1", "e2")
        cluster.of.schedulers["s1"].kill()
        with pytest.raises(httpx.TransportError):
            query.result(BOUND_S)
        count = len(load.answers)
        until(lambda: len(load.answers) > count + 6, "the other is asked", BOUND_S)
    assert all(each.rows == cluster.facts.quick for each in load.answers)
    cluster.served = cluster.serve("s1")
    cluster.served.until_ready(2)
    assert cluster.served.ask(QUICK).rows == second.ask(QUICK).rows == cluster.facts.quick
    assert cluster.of.schedulers.pop("s2").terminate() == 0


def test_head_is_replaced_under_a_running_cluster(cluster: FaultCluster) -> None:
    before = incarnations(cluster)
    with loaded(cluster.served, QUICK) as load:
        query = cluster.served.begin(LONG)
        cluster.served.until_busy("e1", "e2")
        cluster.of.head.kill()
        assert told(query.result(BOUND_S)).rows == cluster.facts.long
        count = len(load.answers)
        until(lambda: len(load.answers) > count + 6, "queries go on without the head", BOUND_S)
        new = cluster.of.begin("e3")
        began = time.monotonic()
        cluster.of.begin_head().wait_up()
        print(f"head back after {time.monotonic() - began:.1f} s")
        new.wait_up()
        print(f"new executor joined after {time.monotonic() - began:.1f} s")
        cluster.served.until_ready(3)
        print(f"all ready after {time.monotonic() - began:.1f} s")
    assert_all_answered(cluster, load)
    after = incarnations(cluster)
    assert {name: after[name] for name in before} == before
    assert cluster.served.ask(LONG).rows == cluster.facts.long
    assert cluster.of.executors.pop("e3").terminate() == 0
    until(lambda: "e3" not in incarnations(cluster), "the executor that ended is lost", BOUND_S)


def test_a_state_server_that_hangs_is_replaced_within_the_head(cluster: FaultCluster) -> None:
    before, old = incarnations(cluster), state_server(cluster)
    with loaded(cluster.served, QUICK) as load:
        os.kill(old, signal.SIGSTOP)
        began = time.monotonic()
        until(lambda: state_server(cluster) not in (0, old), "the node is replaced", BOUND_S)
        print(f"replaced after {time.monotonic() - began:.1f} s")
        cluster.served.until_ready(2)
    assert_all_answered(cluster, load)
    assert incarnations(cluster) == before
    assert cluster.of.head.popen.poll() is None


def test_a_head_whose_watch_hangs_replaces_its_node(cluster: FaultCluster) -> None:
    before, old = incarnations(cluster), state_server(cluster)
    with loaded(cluster.served, QUICK) as load:
        os.kill(ray_start(cluster), signal.SIGSTOP)
        until(lambda: state_server(cluster) not in (0, old), "the node is replaced", BOUND_S)
        cluster.served.until_ready(2)
    assert_all_answered(cluster, load)
    assert incarnations(cluster) == before
    assert cluster.of.head.popen.poll() is None


def test_a_head_leaves_a_silent_redis_and_returns_with_it(
    cluster: FaultCluster, server: valkey.Server
) -> None:
    before, old = incarnations(cluster), state_server(cluster)
    with loaded(cluster.served, QUICK) as load:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            until(lambda: state_server(cluster) != old, "the node has ended", BOUND_S)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        until(lambda: state_server(cluster) != 0, "the node is replaced", BOUND_S)
        cluster.served.until_ready(2)
    assert_all_answered(cluster, load)
    assert incarnations(cluster) == before


def test_a_scheduler_outlives_its_ray_node(cluster: FaultCluster) -> None:
    before, scheduler = incarnations(cluster), cluster.of.schedulers["s1"]
    with loaded(cluster.served, QUICK) as load:
        os.kill(node_of(scheduler), signal.SIGKILL)
        until(lambda: "joined the cluster" in scheduler.log.read_text(), "it rejoins", BOUND_S)
        cluster.served.until_ready(2)
    away = [each for each in load.answers if each.status != 200]
    print(f"{len(load.answers)} answers, {len(away)} while the scheduler had no executors")
    assert {(each.status, each.retry_after is None) for each in away} <= {
        (503, False),
        (429, False),
    }
    right = [each.rows for each in load.answers if each.status == 200]
    assert right and all(rows == cluster.facts.quick for rows in right)
    assert scheduler.popen.poll() is None
    assert incarnations(cluster) == before
    assert cluster.served.ask(LONG).rows == cluster.facts.long


def test_a_scheduler_that_starts_without_the_head_works_with_running_executors(
    cluster: FaultCluster,
) -> None:
    before = incarnations(cluster)
    cluster.of.head.kill()
    cluster.of.schedulers["s1"].kill()
    began = time.monotonic()
    cluster.served = cluster.serve("s1")
    cluster.served.until_ready(len(before))
    print(f"ready without the head after {time.monotonic() - began:.1f} s")
    assert incarnations(cluster) == before
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    # Exchanges need Ray, so a statement that would run in stages runs whole.
    assert told(cluster.served.ask(LONG)).rows == cluster.facts.long
    assert count_lines(cluster.served, WIDE) == WIDE_ROWS
    with loaded(cluster.served, QUICK) as load:
        log = cluster.of.schedulers["s1"].log
        joined = log.read_text().count("joined the cluster")
        cluster.of.begin_head().wait_up()
        until(lambda: log.read_text().count("joined the cluster") > joined, "it joins", BOUND_S)
        count = len(load.answers)
        until(lambda: len(load.answers) > count + 6, "queries go on in the cluster", BOUND_S)
    assert_all_answered(cluster, load)
    assert incarnations(cluster) == before
    assert cluster.served.ask(LONG).rows == cluster.facts.long


def test_a_scheduler_starts_while_everything_else_is_away(cluster: FaultCluster) -> None:
    names = sorted(incarnations(cluster))
    for process in (cluster.of.head, *cluster.of.executors.values()):
        process.kill()
    cluster.of.schedulers["s1"].kill()
    began = time.monotonic()
    cluster.served = cluster.serve("s1")
    print(f"scheduler without the head after {time.monotonic() - began:.1f} s")
    assert not cluster.served.is_ready(1) and cluster.served.is_ready(0)
    refused = cluster.served.ask(QUICK)
    assert refused.status in (429, 503) and refused.retry_after
    job = {"sql": QUICK}
    sent = httpx.post(f"{cluster.served.url}/v1/queries", json=job, timeout=60)
    assert sent.status_code == 202
    began = time.monotonic()
    cluster.of.begin_head()
    for each in names:
        cluster.of.begin(each)
    for process in (cluster.of.head, *cluster.of.executors.values()):
        process.wait_up()
    cluster.served.until_ready(len(names))
    print(f"executors are ready again {time.monotonic() - began:.1f} s after the head's start")
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    status = f"{cluster.served.url}/v1/queries/{sent.json()['query_id']}/status"
    until(lambda: httpx.get(status, timeout=60).json()["status"] == "SUCCEEDED", "the job", 120)


def count_lines(served: Served, sql: str) -> int:
    """Read a result of many pages, and return the number of its rows."""
    headers = {"accept": "application/x-ndjson"}
    url = f"{served.url}/v1/sql"
    with httpx.stream("POST", url, content=sql, timeout=BOUND_S, headers=headers) as answer:
        assert answer.status_code == 200
        return sum(bool(line) for line in answer.iter_lines())


def node_of(process: Process) -> int:
    """Return the Ray node of a process of the cluster."""
    within = descendants(process.popen.pid).items()
    return next(pid for pid, title in within if "/raylet/raylet" in title)


def state_server(cluster: FaultCluster) -> int:
    """Return the process of the head's state server, or 0."""
    found = descendants(cluster.of.head.popen.pid).items()
    return next((pid for pid, title in found if "gcs_server" in title.split(" ")[0]), 0)


def ray_start(cluster: FaultCluster) -> int:
    """Return the process in which the watch of the head's state server runs."""
    found = descendants(cluster.of.head.popen.pid).items()
    return next(pid for pid, title in found if title.split(" ")[1:4] == RAY_START)


def assert_all_answered(cluster: FaultCluster, load: Load) -> None:
    failed = [each.error for each in load.answers if each.status != 200]
    print(f"{len(load.answers)} answers, failed: {failed}")
    assert not failed
    assert all(each.rows == cluster.facts.quick for each in load.answers)


def told(answer: Answer) -> Answer:
    print(f"{answer.status} after {answer.took_s:.1f} s: {answer.text[:200]}")
    return answer
