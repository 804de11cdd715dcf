"""Exports of a cluster: several executors write the files of one table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_gateway.composition.backend import Backend
from tests.kit import iceberg_reader
from tests.kit.clusters import EAGER, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.iceberg_plans import scan_tasks
from tests.kit.runtime import Running, running

BASE = "/v1/caraway/namespaces/public/tables"
ROWS = 600_000
MANIFEST = """
    runtime: {iceberg: {location: published}}
    datasets:
      - from: 'file:rows/'
        name: t
        acceleration: {enabled: true, partition_by: ['bucket(4, id)']}
"""


async def test_executors_write_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    table = pa.table({"id": pa.array(range(ROWS)), "small": pa.array([7] * ROWS, pa.uint8())})
    for number in range(4):
        part = table.slice(number * ROWS // 4, ROWS // 4)
        pq.write_table(part, tmp_path / "rows" / f"{number}.parquet")
    (tmp_path / "cluster").mkdir()
    async with in_process_cluster(tmp_path / "cluster", {}, executors=2, policy=EAGER) as cluster:
        async with running(tmp_path, MANIFEST, backend=Backend(cluster.dispatch)) as runtime:
            metadata = await eventually(lambda: _loaded(runtime), "the dataset is loaded")
            assert metadata is not None
            few = {"type": "lt", "term": "id", "value": 1000}
            tasks = await scan_tasks(runtime.api, f"{BASE}/t", select=["id"], filter=few)
    files = list(iceberg_reader.data_files(metadata))
    assert len({each["file_path"] for each in files}) == len(files) > 1
    assert sum(each["record_count"] for each in files) == ROWS
    found = [
        pq.read_table(pa.BufferReader(iceberg_reader.local(each["file_path"]))) for each in files
    ]
    whole = pa.concat_tables(found).sort_by("id")
    assert whole.column("id").to_pylist() == list(range(ROWS))
    assert whole.schema.names == ["id", "small"]
    assert whole.schema.types == [pa.int64(), pa.int32()]
    assert sum(each["data-file"]["record-count"] for each in tasks) == 1000


async def _loaded(runtime: Running) -> dict[str, Any] | None:
    response = await runtime.api.get(f"{BASE}/t")
    return response.json()["metadata"] if response.status_code == 200 else None
