"""Asynchronous queries of a real cluster: two schedulers, two executors, and a Valkey."""

import os
import signal
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.job_requests import Jobs
from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    LONG,
    QUICK,
    WIDE,
    WIDE_ROWS,
    FaultCluster,
    Served,
    fault_cluster,
)

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server() -> Iterator[valkey.Server]:
    with valkey.serving(tcp=True) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, server: valkey.Server
) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("j"), 2, server.tcp_url) as running:
        yield running


@pytest.fixture(scope="module")
def second(cluster: FaultCluster) -> Served:
    served = cluster.serve("s2")
    served.until_ready(2)
    return served


@pytest.fixture
def both(cluster: FaultCluster, second: Served) -> tuple[Jobs, Jobs]:
    cluster.served.until_ready(2)
    second.until_ready(2)
    return Jobs(cluster.served), Jobs(second)


def test_answer_of_one_scheduler_is_read_from_the_other(
    cluster: FaultCluster, both: tuple[Jobs, Jobs]
) -> None:
    one, two = both
    jobs = [one.submit(QUICK), one.submit(LONG)]
    assert [two.ended(query_id) for query_id in jobs] == ["SUCCEEDED", "SUCCEEDED"]
    assert two.rows(jobs[0]) == cluster.facts.quick
    assert two.rows(jobs[1]) == cluster.facts.long


def test_stored_rows_are_those_of_the_interactive_query(both: tuple[Jobs, Jobs]) -> None:
    one, two = both
    query_id = one.submit(WIDE)
    assert two.ended(query_id) == "SUCCEEDED"
    table = two.table(query_id)
    assert table.num_rows == WIDE_ROWS
    assert table.column_names == ["id", "v", "w"]
    assert len(set(table["id"].to_pylist())) == 400_000


def test_progress_grows_by_stages(both: tuple[Jobs, Jobs]) -> None:
    one, _ = both
    query_id = one.submit(LONG)

    def stages() -> int:
        return int(one.status(query_id).get("progress", {}).get("stages_total", 0))

    assert until(lambda: stages() > 1 and stages(), "several stages are planned", 120) > 1
    assert one.ended(query_id) == "SUCCEEDED"


def test_executor_killed_while_rows_are_stored(
    cluster: FaultCluster, both: tuple[Jobs, Jobs]
) -> None:
    one, _ = both
    # Several seconds of rows.
    query_id = one.submit(WIDE.replace("b.id < 2000", "b.id < 6000"))

    results = cluster.manifest.parent / "results"
    actor = cluster.of.actor_pid("e2")
    until(lambda: list(results.glob(f"*/jobs/{query_id}.*/*")), "chunks are stored", 60)
    os.kill(actor, signal.SIGKILL)
    assert one.status(query_id)["status"] == "RUNNING"
    assert one.ended(query_id) == "SUCCEEDED"
    table = one.table(query_id)
    assert table.num_rows == 3 * WIDE_ROWS
    counts = table.group_by("id").aggregate([("w", "count")])["w_count"]
    assert set(counts.to_pylist()) == {30}


def test_killed_scheduler_is_followed_by_the_other(
    cluster: FaultCluster, both: tuple[Jobs, Jobs]
) -> None:
    one, two = both
    jobs = [one.submit(LONG) for _ in range(4)]
    one.until_running(jobs[0])
    cluster.of.schedulers["s1"].kill()
    assert {two.ended(query_id) for query_id in jobs} == {"SUCCEEDED"}
    assert all(two.rows(query_id) == cluster.facts.long for query_id in jobs)
    cluster.served = cluster.serve("s1")
    cluster.served.until_ready(2)
    assert Jobs(cluster.served).rows(jobs[0]) == cluster.facts.long


def test_stopped_scheduler_cannot_overwrite(cluster: FaultCluster, both: tuple[Jobs, Jobs]) -> None:
    one, two = both
    query_id = one.submit(LONG)
    one.until_running(query_id)
    process = cluster.of.schedulers["s1"].popen
    process.send_signal(signal.SIGSTOP)
    try:
        assert two.ended(query_id) == "SUCCEEDED"
        assert two.rows(query_id) == cluster.facts.long
    finally:
        process.send_signal(signal.SIGCONT)
    cluster.served.until_ready(2)
    assert one.status(query_id) == two.status(query_id)
    assert one.rows(query_id) == cluster.facts.long


def test_interactive_queries_are_answered_during_jobs(
    cluster: FaultCluster, both: tuple[Jobs, Jobs]
) -> None:
    one, _ = both
    jobs = [one.submit(LONG) for _ in range(6)]
    one.until_running(jobs[0])
    waits = [cluster.served.ask(QUICK) for _ in range(5)]
    assert all(each.rows == cluster.facts.quick for each in waits)
    assert one.status(jobs[-1])["status"] in ("PENDING", "RUNNING")
    assert {one.ended(query_id) for query_id in jobs} == {"SUCCEEDED"}


def test_store_that_does_not_answer_delays_and_loses_nothing(
    cluster: FaultCluster, server: valkey.Server, both: tuple[Jobs, Jobs]
) -> None:
    one, two = both
    query_id = one.submit(LONG)
    one.until_running(query_id)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        for path in ("", f"/{query_id}", f"/{query_id}/status"):
            got = httpx.get(f"{cluster.served.url}/v1/queries{path}", timeout=60)
            assert got.status_code == 503, got.text
            assert int(got.headers["retry-after"]) > 0
            assert "state store" in got.json()["error"]
        assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert two.ended(query_id) == "SUCCEEDED"
    assert one.rows(query_id) == two.rows(query_id) == cluster.facts.long
