"""Accelerated datasets of a real cluster of two executors, with faults."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Load, Served, loaded
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
ROWS = 2_000_000
MANIFEST = """\
version: v1
kind: Caraway
name: accelerated
runtime:
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - from: file:numbers.parquet
    name: numbers
    acceleration: {enabled: true, engine: file}
"""
MIXTURE = "SELECT min(v) AS least, max(v) AS most, count(*) AS n, sum(id) AS s FROM numbers"


class Accelerated:
    """The cluster and its one dataset, in which every row has the number of its version."""

    def __init__(self, of: RayCluster, folder: Path) -> None:
        self.of = of
        self.folder = folder
        self.served = Served("")

    def write(self, version: int) -> None:
        table = pa.table({"id": pa.array(range(ROWS)), "v": pa.array([version] * ROWS)})
        draft = self.folder / "numbers.draft"
        parquet.write_table(table, draft, row_group_size=100_000)
        draft.rename(self.folder / "numbers.parquet")

    def standing(self) -> Mapping[str, Any]:
        url = f"{self.served.url}/v1/datasets/numbers/acceleration"
        told: Mapping[str, Any] = httpx.get(url, timeout=60).json()
        return told

    def number(self) -> int:
        return int(self.standing().get("version", {}).get("number", 0))

    def refresh(self) -> None:
        url = f"{self.served.url}/v1/datasets/numbers/acceleration/refresh"
        assert httpx.post(url, json={}, timeout=60).status_code == 201

    def until_version(self, number: int) -> None:
        until(lambda: self.number() >= number, f"version {number} is read", BOUND_S)

    def whole(self, version: int) -> list[Mapping[str, int]]:
        total = ROWS * (ROWS - 1) // 2
        return [{"least": version, "most": version, "n": ROWS, "s": total}]

    def until_read(self, load: Load, more: int) -> None:
        count = len(load.answers)
        until(lambda: len(load.answers) > count + more, "readers go on", BOUND_S)

    def check(self, load: Load) -> None:
        """Check that each answer has rows of one version only."""
        failed = [each.error for each in load.answers if each.status != 200]
        assert not failed, failed[0]
        for each in load.answers:
            (row,) = each.rows
            assert row["least"] == row["most"], row
            assert list(each.rows) == self.whole(row["least"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accelerated]:
    folder = tmp_path_factory.mktemp("a")
    with ray_cluster(folder, 2) as of:
        accelerated = Accelerated(of, folder)
        accelerated.write(1)
        manifest = folder / "caraway.yaml"
        manifest.write_text(MANIFEST)
        process = of.begin_scheduler("s1", manifest).wait_up()
        accelerated.served = Served(f"http://{process.facts['http']}")
        accelerated.served.until_ready(2)
        accelerated.until_version(1)
        yield accelerated


def test_rows_are_in_the_memory_of_both_executors(cluster: Accelerated) -> None:
    assert cluster.served.ask(MIXTURE).rows == cluster.whole(1)

    def holders() -> int:
        told = cluster.served.executors().values()
        return sum("numbers" in (each["holds"] or []) for each in told)

    until(lambda: holders() == 2, "both hold a share", BOUND_S)


def test_no_reader_sees_a_mixture_while_versions_follow_each_other(cluster: Accelerated) -> None:
    with loaded(cluster.served, MIXTURE) as load:
        for _ in range(3):
            number = cluster.number() + 1
            cluster.write(number)
            cluster.refresh()
            cluster.until_version(number)
            cluster.until_read(load, 3)
    cluster.check(load)
    assert {each.rows[0]["least"] for each in load.answers} >= {cluster.number()}


def test_executor_killed_in_a_refresh(cluster: Accelerated) -> None:
    number = cluster.number() + 1
    cluster.write(number)
    results = cluster.folder / "s1" / "results" / "datasets"
    before = set(results.iterdir())
    actor = cluster.of.actor_pid("e2")
    cluster.refresh()
    until(lambda: set(results.glob("d-*")) - before, "chunks are written", BOUND_S)
    os.kill(actor, signal.SIGKILL)
    cluster.until_version(number)
    assert cluster.served.ask(MIXTURE).rows == cluster.whole(number)
    cluster.served.until_ready(2)
    assert cluster.served.ask(MIXTURE).rows == cluster.whole(number)


def test_scheduler_killed_in_a_refresh(cluster: Accelerated) -> None:
    number = cluster.number() + 1
    cluster.write(number)
    results = cluster.folder / "s1" / "results" / "datasets"
    before = set(results.iterdir())
    cluster.refresh()
    until(lambda: set(results.glob("d-*")) - before, "chunks are written", BOUND_S)
    cluster.of.schedulers["s1"].kill()
    process = cluster.of.begin_scheduler("s1", cluster.folder / "caraway.yaml").wait_up()
    cluster.served = Served(f"http://{process.facts['http']}")
    cluster.served.until_ready(2)
    cluster.until_version(number - 1)
    # The refresh may have finished before the kill, and become visible afterwards.
    rows = cluster.served.ask(MIXTURE).rows
    assert rows in (cluster.whole(number - 1), cluster.whole(number))
    now = cluster.number()
    cluster.refresh()
    cluster.until_version(now + 1)
    assert cluster.served.ask(MIXTURE).rows == cluster.whole(number)


def test_third_executor_takes_a_share_and_no_query_fails(cluster: Accelerated) -> None:
    with loaded(cluster.served, MIXTURE) as load:
        cluster.of.begin("e3").wait_up()
        cluster.served.until_ready(3)
        cluster.until_read(load, 9)
    cluster.check(load)
