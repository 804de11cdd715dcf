"""Append refreshes by the time at which files were written."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.deadlines import eventually
from tests.kit.runtime import running

MANIFEST = """
    datasets:
      - from: 'file:orders/'
        name: orders
        params: {metadata_columns: "true"}
        time_column: _last_modified
        acceleration: {enabled: true, refresh_mode: append, refresh_check_interval: 1h}
"""


def write(folder: Path, name: str, id_: int, at_s: int) -> None:
    path = folder / "orders" / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": [id_]}), path)
    os.utime(path, (at_s, at_s))


async def test_an_append_reads_the_files_that_are_new(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", 1, 1_700_000_000)
    async with running(tmp_path, MANIFEST) as runtime:

        async def ids() -> list[int]:
            answer = await runtime.sql("SELECT id FROM orders ORDER BY id")
            return [row["id"] for row in answer.json()] if answer.status_code == 200 else []

        async def has_one() -> bool:
            return await ids() == [1]

        async def has_two() -> bool:
            await runtime.api.post("/v1/datasets/orders/acceleration/refresh")
            return 2 in await ids()

        await eventually(has_one, "the first file is read")
        # Another row in a file that is as old as before is not seen.
        write(tmp_path, "a.parquet", 7, 1_700_000_000)
        write(tmp_path, "b.parquet", 2, 1_700_000_100)
        await eventually(has_two, "the second file is read")
        assert await ids() == [1, 2]
