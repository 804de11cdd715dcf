"""Changes to a dataset of a real cluster of two executors, with faults.

A producer sends transfers between accounts and repeats unanswered requests, as producers do.
Readers sum up all accounts, and must find the initial total, whatever crashes meanwhile.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Load, Served, loaded
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
ACCOUNTS = 50_000
FIRST = 100
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
SUM = "SELECT count(*) AS n, sum(v) AS s FROM accounts"
WHOLE = [{"n": ACCOUNTS, "s": ACCOUNTS * FIRST}]


class Producer:
    """Sends transfers, and records what every account must have after each acknowledged one."""

    def __init__(self) -> None:
        self.served = Served("")
        self.model = dict.fromkeys(range(ACCOUNTS), FIRST)
        self.sent = 0
        self.again = 0
        self.errors: list[BaseException] = []
        self._chosen = random.Random(7)
        self._lsn = 0
        self._stopping = threading.Event()

    def begin(self) -> None:
        for start in range(0, ACCOUNTS, 5000):
            self.send([self.event(id_, FIRST) for id_ in range(start, start + 5000)])

    def event(self, id_: int, value: int) -> Mapping[str, Any]:
        self._lsn += 1
        source = {"connector": "postgresql", "name": "bank", "lsn": self._lsn}
        return {"op": "u", "before": None, "after": {"id": id_, "v": value}, "source": source}

    def transfer(self) -> None:
        events = []
        for _ in range(100):
            some, other = self._chosen.sample(range(ACCOUNTS), 2)
            amount = self._chosen.randrange(FIRST)
            self.model[some] -= amount
            self.model[other] += amount
            events += [self.event(some, self.model[some]), self.event(other, self.model[other])]
        self.send(events)

    def send(self, events: list[Mapping[str, Any]]) -> None:
        """Send until it is answered, wherever the scheduler is by then."""
        end = time.monotonic() + BOUND_S
        while True:
            try:
                url = f"{self.served.url}/v1/datasets/accounts/cdc"
                got = httpx.post(url, json=events, timeout=60)
            except httpx.TransportError:
                got = None
            if got is not None and got.status_code == 200:
                assert got.json()["applied"] == len(events)
                self.sent += 1
                return
            known = got is None or got.status_code in (401, 404, 503, 504, 500)
            assert known and time.monotonic() < end, got and got.text
            self.again += 1
            self._stopping.wait(0.05)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._stopping.clear()

        def work() -> None:
            try:
                while not self._stopping.is_set():
                    self.transfer()
            except BaseException as exc:
                self.errors.append(exc)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
        assert not self.errors, self.errors[0]

    def until_sent(self, more: int) -> None:
        count = self.sent
        until(lambda: self.sent >= count + more or bool(self.errors), "changes go on", BOUND_S)
        assert not self.errors, self.errors[0]


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
