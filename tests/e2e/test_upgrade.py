"""A cluster of the release before becomes one of this release, process by process, and back.

The order is that of the operator: one executor, the schedulers, the other executors, the head.
With CARAWAY_UPGRADE=short, one executor and the schedulers are replaced, and no statement is long.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from tests.e2e.job_requests import Jobs
from tests.e2e.producing import SUM, WHOLE, Producer
from tests.kit import releases, valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, LONG, QUICK, Facts, Served, in_thread, write_facts
from tests.kit.ray_cluster import Host, RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400)]
MANIFEST = """\
version: v1
kind: Caraway
name: upgraded
runtime:
  scheduler: {state_location: results}
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - {from: 'file:lefts/', name: lefts, params: {file_format: parquet}}
  - {from: 'file:rights/', name: rights, params: {file_format: parquet}}
  - from: file:rights/
    name: kept
    params: {file_format: parquet}
    acceleration: {enabled: true, engine: file, sort_by: id}
  - from: cdc:accounts
    name: accounts
    columns: [{name: id, type: bigint}, {name: v, type: bigint}]
    acceleration: {enabled: true, engine: file, primary_key: id}
"""
KEPT = "SELECT k % 10 AS g, count(*) AS n FROM kept GROUP BY 1 ORDER BY 1"
KEPT_ROWS = [{"g": g, "n": 10_000} for g in range(10)]
IS_SHORT = os.environ.get("CARAWAY_UPGRADE") == "short"
JOB = "SELECT id, v FROM accounts ORDER BY id LIMIT 1000"
_PAUSE_S = 3.0
"""The longest wait before a retry, as `Retry-After` asks."""


@dataclass
class Service:
    """The schedulers that are ready, as the Service of Kubernetes has them."""

    urls: list[str] = field(default_factory=list)
    turn: int = 0

    def ask(self, sql: str, within_s: float = BOUND_S) -> tuple[Any, str]:
        """Return the rows, and why the first try failed if it did. The second one must not."""
        problem = ""
        for _ in range(2):
            self.turn += 1
            url = self.urls[self.turn % len(self.urls)]
            try:
                got = httpx.post(f"{url}/v1/sql", content=sql, timeout=within_s)
            except httpx.TransportError as exc:
                problem = f"{problem}{type(exc).__name__} "
                continue
            if got.status_code == 200:
                return got.json(), problem
            problem = f"{problem}{got.status_code} {got.text[:300]} "
            time.sleep(min(_PAUSE_S, float(got.headers.get("retry-after", 0))))
        raise AssertionError(f"{sql}: not answered by two tries: {problem}")


@dataclass
class Asking:
    """Statements that are asked all the time."""

    service: Service
    answers: int = 0
    retries: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)

    @contextmanager
    def at_work(self, expected: Mapping[str, Any]) -> Iterator[None]:
        stopping = threading.Event()

        def work(sql: str, rows: Any) -> None:
            while not stopping.is_set() and not self.errors:
                try:
                    found, problem = self.service.ask(sql)
                except BaseException as exc:
                    self.errors.append(exc)
                    return
                self.answers += 1
                self.retries += [problem] if problem else []
                self.wrong += [] if found == rows else [f"{sql}: {found}"]

        running = [in_thread(lambda s=sql, r=rows: work(s, r)) for sql, rows in expected.items()]
        try:
            yield
        finally:
            stopping.set()
            for each in running:
                each.result(2 * BOUND_S)
        assert not self.errors, self.errors[0]
        assert not self.wrong, self.wrong[0]


@dataclass
class Upgraded:
    """The cluster, its data and its clients."""

    of: RayCluster
    hosts: dict[str, Host]
    manifest: Path
    facts: Facts
    service: Service = field(default_factory=Service)
    producer: Producer = field(default_factory=Producer)
    names: list[str] = field(default_factory=list)
    """The schedulers that serve."""
    jobs: dict[str, Any] = field(default_factory=dict)
    """The results of jobs that were read, by id."""
    started: int = 0
    first_versions: set[int] = field(default_factory=set)

    def versions(self) -> set[int]:
        """Return the protocol versions of the executors, as each scheduler lists them."""
        listed = [Served(url).executors().values() for url in self.service.urls]
        return {int(each["protocol_version"]) for found in listed for each in found}

    def add_scheduler(self, host: Host) -> str:
        self.started += 1
        name = f"s{self.started}"
        self.hosts[name] = host
        process = self.of.begin_scheduler(name, self.manifest).wait_up()
        url = f"http://{process.facts['http']}"
        Served(url).until_ready(2)
        self.service.urls = [*self.service.urls, url]
        self.names.append(name)
        self.producer.served = Served(url)
        return url

    def replace_scheduler(self, host: Host) -> None:
        """Start a new one, and stop the oldest when it is ready, as a Deployment does."""
        self.add_scheduler(host)
        old = self.of.schedulers[self.names.pop(0)]
        leaving = f"http://{old.facts['http']}"
        # It leaves the Service as it stops: some clients still have its address.
        old.popen.terminate()
        self.service.urls = [each for each in self.service.urls if each != leaving]
        assert old.popen.wait(BOUND_S) == 0

    def replace_executor(self, name: str, host: Host) -> None:
        assert self.of.executors[name].terminate() == 0
        self.hosts[name] = host
        self.of.begin(name).wait_up()
        for url in self.service.urls:
            Served(url).until_ready(2)
        builds = Served(self.service.urls[0]).executors()
        assert builds[name]["state"] == "ready", builds[name]["reason"]

    def replace_head(self, host: Host) -> None:
        assert self.of.head.terminate() == 0
        self.hosts["head"] = host
        self.of.begin_head().wait_up()
        for url in self.service.urls:
            Served(url).until_ready(2)

    def submit(self, sql: str) -> str:
        return Jobs(Served(self.service.urls[0])).submit(sql)

    def finish(self, job: str) -> None:
        """Read the result of a job at each scheduler."""
        rows = self.read(job)
        assert rows
        self.jobs[job] = rows

    def read(self, job: str) -> Any:
        found = []
        for url in self.service.urls:
            jobs = Jobs(Served(url))
            assert jobs.ended(job) == "SUCCEEDED", jobs.status(job)
            found.append(jobs.rows(job))
        assert all(each == found[0] for each in found)
        return found[0]

    def check(self) -> None:
        """Check that no acknowledged row is lost, and that results of jobs are as they were."""
        rows, _ = self.service.ask("SELECT id, v FROM accounts")
        assert {each["id"]: each["v"] for each in rows} == self.producer.model
        for job, known in self.jobs.items():
            assert self.read(job) == known
        for url in self.service.urls:
            listed = httpx.get(f"{url}/v1/datasets?status=true", timeout=60).json()
            states = {each["name"]: each["status"] for each in listed}
            assert set(states.values()) == {"ready"}, states


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    folder = tmp_path_factory.mktemp("up")
    old = releases.earlier(folder / "earlier")
    facts = write_facts(folder)
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST)
    hosts = dict.fromkeys(("head", "e1", "e2"), old)
    with (
        valkey.serving(tcp=True) as server,
        ray_cluster(folder, 2, server.tcp_url, "256MiB", hosts=hosts) as of,
    ):
        made = Upgraded(of, hosts, manifest, facts)
        for _ in range(2):
            made.add_scheduler(old)
        made.first_versions = made.versions()
        made.producer.begin()
        yield made


@contextmanager
def beside(cluster: Upgraded, facts: Facts) -> Iterator[None]:
    """Have a long statement run meanwhile, which must answer."""
    if IS_SHORT:
        yield
        return
    running = in_thread(lambda: cluster.service.ask(LONG))
    yield
    assert running.result(BOUND_S)[0] == list(facts.long)


def move(cluster: Upgraded, host: Host) -> None:
    """Replace every process, or the first ones, while statements, changes and jobs go on."""
    facts, asking = cluster.facts, Asking(cluster.service)
    before = cluster.submit(JOB)
    cluster.finish(before)
    statements = {QUICK: list(facts.quick), SUM: WHOLE, KEPT: KEPT_ROWS}
    with asking.at_work(statements), cluster.producer.at_work():
        until(lambda: asking.answers > 3 or bool(asking.errors), "statements are answered", BOUND_S)
        with beside(cluster, facts):
            cluster.replace_executor("e2", host)
        job = cluster.submit(JOB if IS_SHORT else LONG)
        with beside(cluster, facts):
            for _ in range(2):
                cluster.replace_scheduler(host)
        cluster.finish(job)
        if not IS_SHORT:
            cluster.replace_executor("e1", host)
            cluster.replace_head(host)
        cluster.producer.until_sent(5)
        answers = asking.answers
        until(lambda: asking.answers > answers + 3 or bool(asking.errors), "answers go on", BOUND_S)
    print(f"{asking.answers} answers, {len(asking.retries)} by a second try: {asking.retries[:5]}")
    cluster.check()


def test_a_cluster_is_upgraded_by_one_release(cluster: Upgraded) -> None:
    move(cluster, releases.current())
    left = cluster.first_versions if IS_SHORT else set()
    assert cluster.versions() == {PROTOCOL_VERSION} | left


def test_the_cluster_is_downgraded_by_one_release(cluster: Upgraded, tmp_path: Path) -> None:
    move(cluster, releases.earlier(tmp_path / "earlier"))
    assert cluster.versions() == cluster.first_versions
