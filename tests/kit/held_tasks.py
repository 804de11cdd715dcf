"""A cluster that runs the first task of a statement, and the others when the test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Task
from tests.kit.cluster_runtime import Clustered, clustered

SQL = "SELECT g, count(*) AS n FROM facts GROUP BY g ORDER BY g"


@asynccontextmanager
async def holding(folder: Path, manifest: str) -> AsyncIterator[tuple[Clustered, asyncio.Event]]:
    """Serve a manifest with the dataset `facts`; all tasks but the first wait for an event."""
    rows = pa.table({"g": [n % 3 for n in range(300)], "v": range(300)})
    pq.write_table(rows, folder / "facts.parquet", row_group_size=100)
    gate, begun = asyncio.Event(), 0

    async def before(_executor_id: ExecutorId, _task: Task) -> None:
        nonlocal begun
        begun += 1
        if begun > 1:
            await gate.wait()

    async with clustered(folder, manifest) as cluster:
        cluster.fleet.before = before
        yield cluster, gate
