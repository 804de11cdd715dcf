"""A real cluster behind a scheduler's HTTP port, with long queries, for fault tests."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import parquet

from tests.kit.deadlines import until
from tests.kit.ray_cluster import Host, RayCluster, ray_cluster

BOUND_S = 300.0
"""The time limit of a query under any fault, on a busy machine."""
LEFT_ROWS, RIGHT_ROWS, KEYS = 400_000, 100_000, 200
_FILES = 8
_MANIFEST = """\
version: v1
kind: Caraway
name: faults
runtime:
  scheduler: {state_location: results}
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - {from: 'file:lefts/', name: lefts, params: {file_format: parquet}}
  - {from: 'file:rights/', name: rights, params: {file_format: parquet}}
"""

QUICK = "SELECT k % 10 AS g, count(*) AS n, sum(v) AS s FROM lefts GROUP BY 1 ORDER BY 1"
LONG = (
    "SELECT a.k % 10 AS g, count(*) AS n, sum(a.v * b.v) AS s FROM lefts a JOIN rights b "
    "ON a.k = b.k GROUP BY 1 ORDER BY 1"
)
"""Both sides are partitioned by hash; the join then takes seconds for 200 million pairs."""
WIDE = "SELECT a.id, a.v, b.v AS w FROM lefts a JOIN rights b ON a.k = b.k WHERE b.id < 2000"
WIDE_ROWS = LEFT_ROWS * 2000 // KEYS
"""Most of the result is still on the executors when the first rows arrive."""
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    took_s: float
    retry_after: str | None = None

    @property
    def rows(self) -> Rows:
        assert self.status == 200, self.text
        found: Rows = json.loads(self.text)
        return found

    @property
    def error(self) -> str:
        """The message of a failed statement; every failure has one."""
        assert self.status != 200
        assert len(self.text) > 10
        return self.text


@dataclass(slots=True)
class Served:
    """A client of a scheduler's API."""

    url: str
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.key} if self.key else {}

    def ask(self, sql: str, within_s: float = BOUND_S) -> Answer:
        """Run a statement; a late response fails the test."""
        began = time.monotonic()
        got = httpx.post(f"{self.url}/v1/sql", content=sql, headers=self.headers, timeout=within_s)
        return Answer(
            got.status_code, got.text, time.monotonic() - began, got.headers.get("retry-after")
        )

    def begin(self, sql: str) -> "Future[Answer]":
        """Run a statement in the background."""
        return in_thread(lambda: self.ask(sql))

    def executors(self) -> Mapping[str, Mapping[str, Any]]:
        got = httpx.get(f"{self.url}/v1/cluster/executors", headers=self.headers, timeout=60)
        return {each["executor_id"]: each for each in got.raise_for_status().json()}

    def incarnations(self) -> Mapping[str, str]:
        return {name: str(each["incarnation"]) for name, each in self.executors().items()}

    def state(self, executor: str) -> str:
        return str(self.executors().get(executor, {}).get("state", "absent"))

    def is_ready(self, executors: int) -> bool:
        try:
            path = f"/v1/ready?min_ready_executors={executors}"
            got = httpx.get(self.url + path, headers=self.headers, timeout=60)
            return got.status_code == 200
        except httpx.TransportError:
            return False

    def until_ready(self, executors: int, seconds: float = 300) -> float:
        """Wait until the condition holds; return the seconds."""
        began = time.monotonic()
        until(lambda: self.is_ready(executors), f"{executors} executors are ready", seconds)
        return time.monotonic() - began

    def until_state(self, executor: str, *states: str, seconds: float = 180) -> float:
        began = time.monotonic()
        until(lambda: self.state(executor) in states, f"{executor} is {states}", seconds)
        return time.monotonic() - began

    def until_busy(self, *executors: str) -> None:
        """Wait until every executor runs a task."""

        def are_busy() -> bool:
            told = self.executors()
            return all(told[each]["active_tasks"] > 0 for each in executors)

        until(are_busy, f"{executors} are at work", 120)


def in_thread(work: Any) -> "Future[Any]":
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as exc:
            done.set_exception(exc)

    threading.Thread(target=run, daemon=True).start()
    return done


@dataclass(slots=True)
class Load:
    """Runs statements repeatedly until the block ends."""

    answers: list[Answer] = field(default_factory=list)


@contextmanager
def loaded(served: Served, sql: str, streams: int = 3) -> Iterator[Load]:
    load, stop = Load(), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            load.answers.append(served.ask(sql))

    asking = [in_thread(ask) for _ in range(streams)]
    try:
        until(lambda: len(load.answers) >= streams, "statements are answered", BOUND_S)
        yield load
    finally:
        stop.set()
        for each in asking:
            each.result(2 * BOUND_S)


@dataclass(slots=True)
class FaultCluster:
    """The processes of a cluster, and the API of the scheduler `s1`."""

    of: RayCluster
    manifest: Path
    served: Served
    facts: "Facts"

    def serve(self, scheduler: str) -> Served:
        """Start a scheduler and wait until it is up."""
        process = self.of.begin_scheduler(scheduler, self.manifest).wait_up()
        return Served(f"http://{process.facts['http']}")


@dataclass(frozen=True, slots=True)
class Facts:
    """The expected results of the statements."""

    quick: Rows
    long: Rows


def write_facts(folder: Path) -> Facts:
    left, right = _table(LEFT_ROWS, 0), _table(RIGHT_ROWS, 7)
    for name, table in (("lefts", left), ("rights", right)):
        (folder / name).mkdir(exist_ok=True)
        each = table.num_rows // _FILES
        for number in range(_FILES):
            file = folder / name / f"{number}.parquet"
            parquet.write_table(table.slice(number * each, each), file)
    lefts, rights = _by_key(left), _by_key(right)
    pairs = [
        (n * lefts_n, s * lefts_s) for (n, s), (lefts_n, lefts_s) in zip(rights, lefts, strict=True)
    ]
    return Facts(_rows(lefts), _rows(pairs))


def _table(rows: int, offset: int) -> pa.Table:
    ids = range(rows)
    return pa.table(
        {
            "id": ids,
            "k": [each * 7919 % KEYS for each in ids],
            "v": [(each + offset) % 101 for each in ids],
        }
    )


def _by_key(table: pa.Table) -> list[tuple[int, int]]:
    """The count and sum per key."""
    found = table.group_by("k").aggregate([("v", "count"), ("v", "sum")]).sort_by("k")
    return list(zip(found["v_count"].to_pylist(), found["v_sum"].to_pylist(), strict=True))


def _rows(by_key: Sequence[tuple[int, int]]) -> Rows:
    return [
        {"g": g, "n": sum(n for n, _ in by_key[g::10]), "s": sum(s for _, s in by_key[g::10])}
        for g in range(10)
    ]


@contextmanager
def fault_cluster(
    folder: Path,
    executors: int = 3,
    state: str | None = None,
    memory: str = "128MiB",
    hosts: Mapping[str, Host] | None = None,
    network: str = "",
) -> Iterator[FaultCluster]:
    """Start a cluster; the block begins when `s1` has its executors ready, with little memory."""
    facts = write_facts(folder)
    manifest = folder / "caraway.yaml"
    manifest.write_text(_MANIFEST)
    with ray_cluster(folder, executors, state, memory, hosts=hosts, network=network) as of:
        cluster = FaultCluster(of, manifest, Served(""), facts)
        cluster.served = cluster.serve("s1")
        cluster.served.until_ready(executors)
        yield cluster
