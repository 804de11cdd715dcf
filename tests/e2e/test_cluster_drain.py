"""Draining executors of a real cluster: one scheduler is asked, all follow, users see nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, QUICK, FaultCluster, Served, fault_cluster, loaded

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with (
        valkey.serving(tcp=True) as server,
        fault_cluster(tmp_path_factory.mktemp("d"), 2, server.tcp_url) as cluster,
    ):
        yield cluster


class Operator:
    """Sends the requests of an operator to a scheduler."""

    def __init__(self, cluster: FaultCluster, scheduler: str) -> None:
        facts = cluster.of.schedulers[scheduler].facts
        token = cluster.of.token.read_text().strip()
        self._client = httpx.Client(
            base_url=f"http://{facts['metrics']}/internal",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )

    def __enter__(self) -> "Operator":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def drain(self, executor: str) -> None:
        assert self._client.post(f"/executors/{executor}/drain").status_code == 202

    def undo(self, executor: str) -> None:
        assert self._client.delete(f"/executors/{executor}/drain").status_code == 200

    def told(self, executor: str) -> Mapping[str, Any]:
        found = self._client.get("/executors").raise_for_status().json()
        return next(each for each in found if each["id"] == executor)

    def load(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._client.get("/load").raise_for_status().json()
        return found

    def until_drained(self, executor: str) -> None:
        until(lambda: self.told(executor)["drained"], f"{executor} has drained", 180)


def test_executor_leaves_and_comes_back_under_load_and_no_query_fails(
    cluster: FaultCluster,
) -> None:
    cluster.served.until_ready(2)
    with Operator(cluster, "s1") as operator, loaded(cluster.served, QUICK) as load:
        until(lambda: operator.load()["running"] >= 1, "queries run")
        operator.drain("e2")
        operator.until_drained("e2")
        before = len(load.answers)
        until(lambda: len(load.answers) > before + 3, "e1 alone answers", BOUND_S)
        assert operator.told("e2")["running"] == 0
        assert not cluster.served.is_ready(2)
        assert cluster.of.executors["e2"].terminate() == 0
        cluster.of.begin("e2").wait_up()
        cluster.served.until_ready(2)
    assert [each.text for each in load.answers if each.status != 200] == []
    assert all(each.rows == cluster.facts.quick for each in load.answers)


def test_every_scheduler_follows_and_a_restarted_one_knows(cluster: FaultCluster) -> None:
    cluster.served.until_ready(2)
    second = cluster.serve("s2")
    second.until_ready(2)
    with Operator(cluster, "s2") as operator:
        operator.drain("e1")
    cluster.served.until_state("e1", "draining")
    cluster.of.schedulers["s1"].kill()
    cluster.served = Served(cluster.serve("s1").url)
    cluster.served.until_ready(1)
    until(lambda: cluster.served.state("e1") in ("draining", "ready"), "e1 has answered", BOUND_S)
    assert cluster.served.state("e1") == "draining"
    assert cluster.served.ask(QUICK).rows == cluster.facts.quick
    with Operator(cluster, "s1") as operator:
        operator.undo("e1")
    for served in (cluster.served, second):
        served.until_state("e1", "ready")
