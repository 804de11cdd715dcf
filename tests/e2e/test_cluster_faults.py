"""Queries of a real cluster whose processes crash, hang or leave."""

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    BOUND_S,
    LEFT_ROWS,
    LONG,
    QUICK,
    RIGHT_ROWS,
    WIDE,
    WIDE_ROWS,
    Answer,
    FaultCluster,
    fault_cluster,
    in_thread,
    loaded,
)
from tests.kit.ray_cluster import descendants

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("c")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: FaultCluster) -> FaultCluster:
    """Yield a cluster with three healthy executors, whatever the previous test did."""
    shared.served.until_ready(3)
    return shared


def assert_well(cluster: FaultCluster, executors: int = 3) -> None:
    """Check that the cluster becomes ready without help, and answers correctly."""
    print(f"ready again after {cluster.served.until_ready(executors):.1f} s")
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick


def told(answer: Answer) -> Answer:
    print(f"{answer.status} after {answer.took_s:.1f} s: {answer.text[:300]}")
    return answer


def test_killed_actor_costs_no_query(cluster: FaultCluster) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2")
    os.kill(cluster.of.actor_pid("e2"), signal.SIGKILL)
    assert told(query.result(BOUND_S)).rows == cluster.facts.long
    assert_well(cluster)


def test_killed_ray_node_costs_no_query(cluster: FaultCluster) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2")
    os.kill(cluster.of.raylet_pid("e2"), signal.SIGKILL)
    assert told(query.result(BOUND_S)).rows == cluster.facts.long
    assert_well(cluster)


def test_killed_executor_costs_no_query_and_leaves_nothing(cluster: FaultCluster) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2")
    cluster.of.executors["e2"].kill()
    assert told(query.result(BOUND_S)).rows == cluster.facts.long
    cluster.served.until_state("e2", "lost")
    cluster.of.begin("e2").wait_up()
    assert_well(cluster)


def test_two_of_three_executors_killed_at_once(cluster: FaultCluster) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2", "e3")
    for pid in [cluster.of.raylet_pid("e2"), cluster.of.actor_pid("e3")]:
        os.kill(pid, signal.SIGKILL)
    assert told(query.result(BOUND_S)).rows == cluster.facts.long
    assert_well(cluster)


def test_stopped_actor_is_lost_and_returns(cluster: FaultCluster) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2")
    pid = cluster.of.actor_pid("e2")
    os.kill(pid, signal.SIGSTOP)
    try:
        print(f"lost after {cluster.served.until_state('e2', 'lost'):.1f} s")
        assert told(query.result(BOUND_S)).rows == cluster.facts.long
        assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    finally:
        os.kill(pid, signal.SIGCONT)
    assert_well(cluster)


def test_stopped_executor_is_given_up_with_its_node_and_joins_again(
    cluster: FaultCluster,
) -> None:
    query = cluster.served.begin(LONG)
    cluster.served.until_busy("e2")
    executor = cluster.of.executors["e2"].popen.pid
    pids = [executor, *descendants(executor)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        print(f"lost after {cluster.served.until_state('e2', 'lost'):.1f} s")
        assert told(query.result(BOUND_S)).rows == cluster.facts.long
        assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert_well(cluster)


def test_answer_that_loses_an_executor_midway_is_broken_off(cluster: FaultCluster) -> None:
    asked = httpx.stream(
        "POST", f"{cluster.served.url}/v1/sql", content=WIDE, timeout=BOUND_S,
        headers={"accept": "application/x-ndjson"},
    )  # fmt: skip
    rows, before = 0, cluster.served.incarnations()
    with pytest.raises(httpx.RemoteProtocolError), asked as answer:
        for line in answer.iter_lines():
            rows += bool(line)
            if rows == 1:
                for each in ("e1", "e2", "e3"):
                    os.kill(cluster.of.actor_pid(each), signal.SIGKILL)
    assert rows < WIDE_ROWS

    def are_new() -> bool:
        return all(before[name] != new for name, new in cluster.served.incarnations().items())

    until(are_new, "every executor was started again", 180)
    assert_well(cluster)


def test_leaving_executor_costs_no_query(cluster: FaultCluster) -> None:
    with loaded(cluster.served, QUICK) as load:
        assert cluster.of.executors["e3"].terminate() == 0
        cluster.served.until_state("e3", "lost", "absent")
        assert not cluster.served.is_ready(3)
    failed = [each for each in load.answers if each.status != 200]
    print(f"{len(load.answers)} answers, failed: {[each.text for each in failed]}")
    assert not failed
    assert all(each.rows == cluster.facts.quick for each in load.answers)
    assert_well(cluster, 2)
    cluster.of.begin("e3").wait_up()
    assert_well(cluster)


SPILLING = (
    "SELECT max(r) AS r FROM (SELECT row_number() OVER (ORDER BY w) AS r FROM (SELECT "
    "md5(arrow_cast(a.id * 97 + n.value, 'Utf8')) || repeat('x', 400) AS w "
    "FROM rights a CROSS JOIN generate_series(1, 4) n) t)"
)
"""Sorts 170 MB on one executor, which has 128 MiB. The digests do not compress, so the spilled
files are larger than `small_files` allows, with one partition and with several.
"""
EXCHANGED = (
    "SELECT count(*) AS n, sum(length(w)) AS s FROM (SELECT w, row_number() OVER (PARTITION BY id "
    "ORDER BY w) AS r FROM (SELECT id, repeat('x', {size}) AS w FROM lefts) t) u WHERE r = 1"
)
"""Partitions 400,000 words of `size` letters; the object stores have 100 MiB each."""


def test_full_disk_fails_the_query_that_spills_and_nothing_else(cluster: FaultCluster) -> None:
    right = [{"r": RIGHT_ROWS * 4}]
    assert told(cluster.served.ask(SPILLING)).rows == right
    with small_files([cluster.of.actor_pid(each) for each in ("e1", "e2", "e3")]):
        query = cluster.served.begin(SPILLING)
        assert cluster.served.ask(QUICK).rows == cluster.facts.quick
        refused = told(query.result(BOUND_S))
        assert refused.status == 507
        assert "the disk for rows that do not fit in memory is full" in refused.error
        assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    assert told(cluster.served.ask(SPILLING)).rows == right
    assert_well(cluster)


@contextlib.contextmanager
def small_files(pids: list[int]) -> Iterator[None]:
    """Limit the files of processes to 64 KiB, as if the disk was full."""
    before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids]
    for pid, (_, hard) in zip(pids, before, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (65536, hard))
    try:
        yield
    finally:
        for pid, limits in zip(pids, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def test_exchange_larger_than_the_object_stores_goes_through_the_disk(
    cluster: FaultCluster,
) -> None:
    answer = told(cluster.served.ask(EXCHANGED.format(size=800)))
    assert answer.rows == [{"n": LEFT_ROWS, "s": LEFT_ROWS * 800}]
    assert_well(cluster)


def test_query_larger_than_executor_memory_spills_or_fails_clearly(
    cluster: FaultCluster,
) -> None:
    before = cluster.served.incarnations()
    answer = told(cluster.served.ask(EXCHANGED.format(size=3000)))
    if answer.status == 200:
        assert answer.rows == [{"n": LEFT_ROWS, "s": LEFT_ROWS * 3000}]
    else:
        assert "memory" in answer.error
    after = cluster.served.incarnations()
    assert before == after
    assert_well(cluster)


def test_two_hundred_concurrent_queries_succeed_or_get_retry_after(
    cluster: FaultCluster,
) -> None:
    asked = [in_thread(lambda: cluster.served.ask(QUICK, 600)) for _ in range(200)]
    answers: list[Answer] = [each.result(620) for each in asked]
    refused = [each for each in answers if each.status == 429]
    print(f"{len(refused)} refused, slowest {max(each.took_s for each in answers):.1f} s")
    assert all(int(each.retry_after or 0) > 0 and each.error for each in refused)
    assert all(each.rows == cluster.facts.quick for each in answers if each.status != 429)
    assert_well(cluster)


def test_executor_of_another_version_is_refused_on_both_sides(cluster: FaultCluster) -> None:
    program = (
        "-c",
        "import runpy; from caraway_core.releases import protocol_versions as versions; "
        "versions.SPOKEN = versions.ProtocolVersions(0, 1); "
        "runpy.run_module('caraway', run_name='__main__', alter_sys=True)",
    )
    other = cluster.of.begin("e4", program).wait_up()
    cluster.served.until_state("e4", "refused")
    reason = cluster.served.executors()["e4"]["reason"]
    assert "speaks versions 0 to 1 of the protocol" in reason
    until(lambda: reason in other.log.read_text(), "the executor says why")
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    assert other.terminate() == 0
    del cluster.of.executors["e4"]


def test_everything_joins_the_head_that_replaces_a_killed_one(cluster: FaultCluster) -> None:
    """Without a Redis it begins another cluster; the Ray nodes end and are replaced."""
    scheduler = cluster.of.schedulers["s1"]
    joined = scheduler.log.read_text().count("joined the cluster")
    # An executor that left is still listed.
    known = cluster.served.incarnations()
    before, began = {each: known[each] for each in cluster.of.executors}, time.monotonic()
    cluster.of.head.kill()
    cluster.of.begin_head().wait_up()
    print(f"head back after {time.monotonic() - began:.1f} s")
    until(
        lambda: scheduler.log.read_text().count("joined the cluster") > joined,
        "the scheduler rejoins",
        120,
    )
    print(f"scheduler joined after {time.monotonic() - began:.1f} s")

    def are_replaced() -> bool:
        now = cluster.served.incarnations()
        return all(now.get(name, old) != old for name, old in before.items())

    # Until then the scheduler may count executors as ready that are about to end.
    until(are_replaced, "the executors are replaced", 120)
    assert_well(cluster)
    assert scheduler.popen.poll() is None
    print(f"all well after {time.monotonic() - began:.1f} s")
