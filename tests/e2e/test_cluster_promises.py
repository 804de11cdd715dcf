"""Acknowledged work is done, even if the scheduler is killed right after its answer.

Two schedulers and two executors as real processes with a Valkey, and `caraway run` alone.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.kit import processes, valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Rows, Served, in_thread, loaded, write_facts
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
MANIFEST = """\
version: v1
kind: Caraway
name: promises
runtime:
  scheduler: {state_location: results}
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - {from: 'file:rows.parquet', name: items, acceleration: {enabled: true}}
  - {from: 'file:lefts/', name: lefts, params: {file_format: parquet}}
  - {from: 'file:rights/', name: rights, params: {file_format: parquet}}
  - from: cdc:events
    name: events
    columns: [{name: id, type: bigint}]
    acceleration: {enabled: true}
"""
ITEMS = "/v1/datasets/items/acceleration"
SUM = "SELECT count(*) AS n, sum(v) AS s FROM items"
COUNT = "SELECT count(*) AS n, count(DISTINCT id) AS d FROM events"
LASTING = (
    "SELECT a.k % 10 AS g, count(*) AS n, sum(a.v * b.v) AS s FROM lefts a JOIN rights b "
    "ON a.k = b.k WHERE b.id < 40000 GROUP BY 1 ORDER BY 1"
)
LEAST_ANSWERS = 39
REFRESHES_PER_S = 4


def write(folder: Path, rows: int, value: int) -> None:
    """Replace the rows that the dataset is loaded from."""
    table = pa.table({"id": list(range(rows)), "v": [value] * rows})
    parquet.write_table(table, folder / "new.parquet")
    (folder / "new.parquet").replace(folder / "rows.parquet")


def events(first: int, count: int) -> list[dict[str, Any]]:
    return [{"op": "c", "before": None, "after": {"id": first + n}} for n in range(count)]


def send(url: str, key: str, rows: list[dict[str, Any]]) -> httpx.Response:
    path, headers = f"{url}/v1/datasets/events/cdc", {"idempotency-key": key}
    return httpx.post(path, json=rows, headers=headers, timeout=60)


def reads(served: Served, sql: str, expected: Rows) -> None:
    """Wait until a statement returns these rows."""
    seen: list[str] = []

    def look() -> bool:
        try:
            answer = served.ask(sql)
        except httpx.TransportError:
            return False
        seen.append(answer.text)
        return answer.status == 200 and list(answer.rows) == expected

    try:
        until(look, f"{sql} answers {expected}", BOUND_S)
    except AssertionError as exc:
        exc.add_note(str(seen[-1:]))
        raise


@dataclass
class Pair:
    """Schedulers `s1` and `s2` of one cluster."""

    of: RayCluster
    manifest: Path
    lasting: Rows = ()
    at: dict[str, Served] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.manifest.parent

    def serve(self, name: str) -> Served:
        process = self.of.begin_scheduler(name, self.manifest).wait_up()
        self.at[name] = Served(f"http://{process.facts['http']}")
        self.at[name].until_ready(2)
        return self.at[name]

    def kill(self, name: str) -> None:
        self.of.schedulers[name].kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("p")
    write(folder, 10, 0)
    write_facts(folder)
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST)
    with valkey.serving(tcp=True) as server, ray_cluster(folder, 2, server.tcp_url) as of:
        pair = Pair(of, manifest)
        for name in ("s1", "s2"):
            reads(pair.serve(name), SUM, [{"n": 10, "s": 0}])
        pair.lasting = pair.at["s1"].ask(LASTING).rows
        yield pair


def test_a_refresh_that_was_answered_is_done(cluster: Pair) -> None:
    write(cluster.folder, 20, 1)
    assert httpx.post(f"{cluster.at['s1'].url}{ITEMS}/refresh", timeout=60).status_code == 201
    cluster.kill("s1")
    reads(cluster.at["s2"], SUM, [{"n": 20, "s": 20}])
    reads(cluster.serve("s1"), SUM, [{"n": 20, "s": 20}])


def test_a_refresh_sql_that_was_set_applies_from_then_on(cluster: Pair) -> None:
    body = {"refresh_sql": "SELECT * FROM items WHERE id < 5"}
    assert httpx.patch(f"{cluster.at['s1'].url}{ITEMS}", json=body, timeout=60).status_code == 200
    cluster.kill("s1")
    for name, value in (("s2", 2), ("s1", 3)):
        if name == "s1":
            cluster.serve(name)
        write(cluster.folder, 20, value)
        assert httpx.post(f"{cluster.at[name].url}{ITEMS}/refresh", timeout=60).status_code == 201
        reads(cluster.at[name], SUM, [{"n": 5, "s": 5 * value}])


def test_changes_that_were_answered_are_read_once(cluster: Pair) -> None:
    rows = events(0, 50)
    assert send(cluster.at["s1"].url, "first", rows).status_code == 200
    cluster.kill("s1")
    for name in ("s2", "s1"):
        served = cluster.serve(name) if name == "s1" else cluster.at[name]
        answer = served.ask(COUNT)
        assert list(answer.rows) == [{"n": 50, "d": 50}]
        assert send(served.url, "first", rows).status_code == 200
        assert send(served.url, "first", events(50, 50)).status_code == 422
        assert list(served.ask(COUNT).rows) == [{"n": 50, "d": 50}]


@pytest.mark.timeout(1800)
def test_queries_continue_while_other_datasets_are_refreshed(cluster: Pair) -> None:
    stop, refreshes = threading.Event(), 0

    def refresh() -> None:
        nonlocal refreshes
        began = time.monotonic()
        while not stop.is_set():
            name = ("s1", "s2")[refreshes % 2]
            got = httpx.post(f"{cluster.at[name].url}{ITEMS}/refresh", timeout=BOUND_S)
            assert got.status_code in (201, 503), got.text
            refreshes += 1
            stop.wait(max(0.0, began + refreshes / REFRESHES_PER_S - time.monotonic()))

    refreshing = in_thread(refresh)
    try:
        with loaded(cluster.at["s1"], LASTING) as one, loaded(cluster.at["s2"], LASTING, 1) as two:
            until(
                lambda: len(one.answers) + len(two.answers) >= LEAST_ANSWERS,
                "enough statements are answered", 1500,
            )  # fmt: skip
    finally:
        stop.set()
        refreshing.result(2 * BOUND_S)
    answers = [*one.answers, *two.answers]
    failed = [each.error for each in answers if each.status != 200]
    took_s = sorted(each.took_s for each in answers)[len(answers) // 2]
    print(f"{len(failed)} of {len(answers)} failed, {took_s:.1f} s each, {refreshes} refreshes")
    assert not failed, failed[0]
    assert all(list(each.rows) == list(cluster.lasting) for each in answers)
    assert refreshes > LEAST_ANSWERS


def test_a_standalone_process_keeps_acknowledged_work_over_a_restart(tmp_path: Path) -> None:
    write(tmp_path, 10, 0)
    write_facts(tmp_path)
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(MANIFEST.replace("  scheduler: {state_location: results}\n", ""))
    rows = events(0, 50)
    with processes.child(tmp_path, manifest) as alone:
        url = str(alone.api.base_url).rstrip("/")
        reads(Served(url), SUM, [{"n": 10, "s": 0}])
        assert send(url, "first", rows).status_code == 200
        write(tmp_path, 20, 1)
        assert alone.api.post(f"{ITEMS}/refresh").status_code == 201
        alone.process.kill()
        alone.process.wait()
    with processes.child(tmp_path, manifest) as again:
        served = Served(str(again.api.base_url).rstrip("/"))
        reads(served, SUM, [{"n": 20, "s": 20}])
        assert send(served.url, "first", rows).status_code == 200
        assert send(served.url, "first", events(50, 50)).status_code == 422
        assert list(served.ask(COUNT).rows) == [{"n": 50, "d": 50}]
