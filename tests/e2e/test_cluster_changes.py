"""Changes to a dataset of a real cluster of two executors, with faults.

A producer sends transfers between accounts and repeats unanswered requests, as producers do.
Readers sum up all accounts, and must find the initial total, whatever crashes meanwhile.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.producing import SUM, WHOLE, Producer
from tests.kit.deadlines import until
from tests.kit.fault_clusters import Load, Served, loaded
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
MANIFEST = """\
version: v1
kind: Caraway
name: changing
runtime:
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - from: cdc:accounts
    name: accounts
    columns: [{name: id, type: bigint}, {name: v, type: bigint}]
    acceleration: {enabled: true, engine: file, primary_key: id}
"""


class Changing:
    """The cluster, its dataset, and its producer."""

    def __init__(self, of: RayCluster, manifest: Path) -> None:
        self.of = of
        self.manifest = manifest
        self.producer = Producer()

    @property
    def served(self) -> Served:
        return self.producer.served

    def serve(self) -> None:
        process = self.of.begin_scheduler("s1", self.manifest).wait_up()
        self.producer.served = Served(f"http://{process.facts['http']}")
        self.served.until_ready(2)

    def check(self) -> None:
        """Check that every account has its last acknowledged value."""
        found = self.served.ask("SELECT id, v FROM accounts").rows
        assert {each["id"]: each["v"] for each in found} == self.producer.model

    def check_sums(self, load: Load) -> None:
        failed = [each.error for each in load.answers if each.status != 200]
        assert not failed, failed[0]
        assert len(load.answers) > 3
        for each in load.answers:
            assert list(each.rows) == WHOLE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changing]:
    folder = tmp_path_factory.mktemp("c")
    with ray_cluster(folder, 2) as of:
        manifest = folder / "caraway.yaml"
        manifest.write_text(MANIFEST)
        changing = Changing(of, manifest)
        changing.serve()
        changing.producer.begin()
        yield changing


def test_readers_find_whole_requests_only(cluster: Changing) -> None:
    with loaded(cluster.served, SUM) as load, cluster.producer.at_work():
        cluster.producer.until_sent(60)
    cluster.check_sums(load)
    cluster.check()

    def is_shared() -> bool:
        plan = cluster.served.ask(f"EXPLAIN {SUM}").text
        return "2 tasks on e1, e2" in plan and "8 of 8 partitions" in plan

    until(is_shared, "each executor reads a part")


def test_an_executor_is_killed_while_it_applies(cluster: Changing) -> None:
    with cluster.producer.at_work():
        cluster.producer.until_sent(10)
        os.kill(cluster.of.actor_pid("e2"), signal.SIGKILL)
        cluster.producer.until_sent(20)
        cluster.served.until_ready(2)
        cluster.producer.until_sent(10)
        assert list(cluster.served.ask(SUM).rows) == WHOLE
    cluster.check()


def test_the_scheduler_is_killed_between_changes_and_answers(cluster: Changing) -> None:
    again = cluster.producer.again
    with cluster.producer.at_work():
        for _ in range(2):
            cluster.producer.until_sent(10)
            cluster.of.schedulers["s1"].kill()
            cluster.serve()
            cluster.producer.until_sent(10)
            assert list(cluster.served.ask(SUM).rows) == WHOLE
    assert cluster.producer.again > again
    cluster.check()


def test_a_third_executor_takes_its_part_and_no_query_fails(cluster: Changing) -> None:
    with loaded(cluster.served, SUM) as load, cluster.producer.at_work():
        cluster.of.begin("e3").wait_up()
        cluster.served.until_ready(3)
        cluster.producer.until_sent(20)
    cluster.check_sums(load)
    cluster.check()
