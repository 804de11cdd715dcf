"""The table catalog of a cluster of two executors: its clients, and exports that executors make."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.kit import catalog_clients, s3
from tests.kit.catalog_clients import KEY
from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Served, in_thread
from tests.kit.ray_cluster import RayCluster, ray_cluster
from tests.kit.s3 import S3Server, s3_server

__all__ = ["s3_server"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
TABLES = "/v1/caraway/namespaces/public/tables"
BUCKET = "published"
FILES = 4
ROWS = {"many": 600_000, "heavy": 4_000_000}
DATASETS = [
    {"from": f"file:{name}/", "name": name,
     "acceleration": {"enabled": True, "partition_by": [f"bucket({FILES}, id)"]}}
    for name in ROWS
]  # fmt: skip
SMALL = {"small_table_size": "1KiB", "broadcast_size": "1KiB", "gather_size": "1KiB"}
SETTINGS = {"query": {"distribution": SMALL}, "caching": {"sql_results": {"enabled": False}}}


@dataclass(frozen=True, slots=True)
class CatalogScheduler:
    """A scheduler of the cluster, which publishes at a place of its own."""

    of: RayCluster
    url: str
    location: str
    s3: dict[str, str] | None

    # Any: JSON.
    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(
            method, f"{self.url}{TABLES}/{path}", headers={"x-api-key": KEY},
            json=body, timeout=BOUND_S,
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
        return answer.json()

    def files(self, table: str) -> list[dict[str, Any]]:
        """Return the data files of a table, by a scan that the server plans."""
        answer = self.ask("POST", f"{table}/plan", {"case-sensitive": True})
        tasks, waiting = list(answer["file-scan-tasks"]), list(answer.get("plan-tasks", ()))
        while waiting:
            answer = self.ask("POST", f"{table}/tasks", {"plan-task": waiting.pop()})
            tasks += answer.get("file-scan-tasks", ())
            waiting += answer.get("plan-tasks", ())
        found = [each["data-file"] for each in tasks]
        assert len({each["file-path"] for each in found}) == len(found)
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    folder = tmp_path_factory.mktemp("c")
    catalog_clients.write(folder)
    for name, rows in ROWS.items():
        (folder / name).mkdir()
        ids = pa.array(range(rows), pa.int64())
        texts = pc.cast(pc.multiply(ids, 7919), pa.string())
        small = pc.cast(pc.bit_wise_and(ids, 7), pa.uint8())
        table = pa.table({"id": ids, "small": small, "text": texts})
        for number in range(FILES):
            part = table.slice(number * rows // FILES, rows // FILES)
            pq.write_table(part, folder / name / f"{number}.parquet")
    with ray_cluster(folder, 2) as of:
        yield of


@pytest.fixture(scope="module", params=["folder", "bucket"])
def scheduler(
    request: pytest.FixtureRequest, cluster: RayCluster, s3_server: S3Server
) -> Iterator[CatalogScheduler]:
    name, location, own = "s1", str(cluster.folder / "shared"), None
    place: dict[str, Any] = {"location": location}
    if request.param == "bucket":
        s3_server.bucket(BUCKET)
        name, location = "s2", f"s3://{BUCKET}/tables"
        place = {"location": location, "params": s3_server.params()}
        own = {"endpoint": s3_server.endpoint, "access-key-id": s3.KEY,
               "secret-access-key": s3.SECRET, "region": s3.REGION}  # fmt: skip
    manifest = cluster.folder / f"{name}.yaml"
    manifest.write_text(catalog_clients.manifest({**SETTINGS, "iceberg": place}, *DATASETS))
    process = cluster.begin_scheduler(name, manifest).wait_up()
    url = f"http://{process.facts['http']}"
    Served(url, KEY).until_ready(2)
    yield CatalogScheduler(cluster, url, location, own)
    cluster.schedulers.pop(name).terminate()


def test_rows_of_clients_are_those_of_sql(scheduler: CatalogScheduler) -> None:
    large = {"many": ("id >= 0", "small = 3 and id < 1000", "text = '7919'")}
    found = catalog_clients.read_by(
        "iceberg_client.py", scheduler.url, ("duckdb", "pyiceberg"), scheduler.s3, large
    )
    found.check_rows("duckdb", "pyiceberg")
    assert found.said["pyiceberg", "tables"] == sorted([*catalog_clients.NAMES, *ROWS])
    assert found.said["pyiceberg", "planned fares"] == [["fare"], 3]
    assert found.said["pyiceberg", "many where id >= 0"] == ROWS["many"]


def test_executors_write_several_files_to_the_place(scheduler: CatalogScheduler) -> None:
    metadata = scheduler.ask("GET", "many")["metadata"]
    found = scheduler.files("many")
    assert len(found) > 1
    assert sum(each["record-count"] for each in found) == ROWS["many"]
    shown = scheduler.location if scheduler.s3 else f"file://{scheduler.location}"
    for place in (metadata["location"], *(each["file-path"] for each in found)):
        assert place.startswith(shown), place


@pytest.mark.parametrize("scheduler", ["folder"], indirect=True)
def test_executor_that_dies_in_an_export(scheduler: CatalogScheduler) -> None:
    served = Served(scheduler.url, KEY)
    loading = in_thread(lambda: scheduler.ask("GET", "heavy"))
    served.until_busy("e1", "e2")
    folder = Path(scheduler.location)
    before = set(folder.glob("*/*/data/*.parquet"))
    until(lambda: set(folder.glob("*/*/data/*.parquet")) - before, "files are written", BOUND_S)
    assert not loading.done()
    os.kill(scheduler.of.actor_pid("e2"), signal.SIGKILL)
    metadata = loading.result(BOUND_S)["metadata"]
    (snapshot,) = metadata["snapshots"]
    assert int(snapshot["summary"]["total-records"]) == ROWS["heavy"]
    paths = [each["file-path"].removeprefix("file://") for each in scheduler.files("heavy")]
    ids = pa.concat_tables(pq.read_table(path, columns=["id"]) for path in paths)["id"]
    assert len(ids) == len(pc.unique(ids)) == ROWS["heavy"]
    assert pc.min_max(ids).as_py() == {"min": 0, "max": ROWS["heavy"] - 1}
    served.until_ready(2)
