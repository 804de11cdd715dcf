"""A long statement while two schedulers refresh its datasets repeatedly."""

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_acceleration.versions import reads
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.fleet import Task
from caraway_core.tables import StoredTable
from tests.kit.cluster_runtime import Clustered, clustered
from tests.kit.clusters import EAGER
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running
from tests.kit.scheduler_pairs import scheduler

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
ROWS = 1000
KEPT_S = 10
FLIPS = 12
DATASETS = ("orders", "people")
MANIFEST = """\
runtime:
  caching: {{sql_results: {{enabled: false}}}}
datasets:
  - {{from: 'file:{folder}/rows.parquet', name: orders, acceleration: {cut}}}
  - {{from: 'file:{folder}/rows.parquet', name: people, acceleration: {cut}}}
"""
CUT = "{enabled: true, partition_by: ['bucket(8, id)']}"
JOIN = "SELECT count(*) AS n, sum(a.v + b.v) AS s FROM orders a JOIN people b ON a.id = b.id"


def write(folder: Path, value: int) -> None:
    """Replace the rows that the datasets are loaded from."""
    rows = pa.table({"id": list(range(ROWS)), "v": [value] * ROWS})
    parquet.write_table(rows, folder / "new.parquet")
    (folder / "new.parquet").replace(folder / "rows.parquet")


async def refreshed(at: Running, name: str) -> None:
    """Refresh a dataset, and wait until its next version is read."""
    path = f"/v1/datasets/{name}/acceleration"

    async def number() -> int:
        found = (await at.api.get(path)).json()
        return int(found.get("version", {"number": 0})["number"])

    await eventually(number, f"{name} is loaded", 100)
    before = await number()
    answer = await at.api.post(f"{path}/refresh")
    assert answer.status_code == 201, answer.text

    async def is_next() -> bool:
        return await number() > before

    await eventually(is_next, f"{name} is refreshed", 100)


async def at_time(seconds: float) -> bool:
    return time.monotonic() >= seconds


def folders(cluster: Clustered) -> set[Path]:
    """Return the folders of the rows that new statements read."""
    snapshot = cluster.dispatch._snapshot
    assert snapshot is not None
    stored = [each for each in snapshot.tables.values() if isinstance(each, StoredTable)]
    assert len(stored) == len(DATASETS)
    return {Path(each.place.path) / each.key for each in stored}


async def test_a_statement_outlives_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "KEPT", timedelta(seconds=KEPT_S))
    write(tmp_path, 0)
    text = MANIFEST.format(folder=tmp_path, cut=CUT)
    placed = f"runtime:\n  scheduler: {{state_location: {tmp_path}/results}}\n"
    (tmp_path / "one").mkdir()
    may_run, has_begun = asyncio.Event(), asyncio.Event()
    held: set[QueryId] = set()

    async def hold(_executor: ExecutorId, task: Task) -> None:
        if not has_begun.is_set():
            has_begun.set()
            held.add(task.query_id)
        if task.query_id in held:
            await may_run.wait()

    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(
            clustered(
                tmp_path / "one", text.replace("runtime:\n", placed),
                policy=EAGER, state=tmp_path / "state.db",
            )
        )  # fmt: skip
        two = (await scheduler(stack, tmp_path, "two", text, poll_s=0.05)).running
        await refreshed(one.runtime, "orders")
        await refreshed(one.runtime, "people")
        began_with = folders(one)
        one.fleet.before = hold
        statement = asyncio.create_task(one.runtime.sql(JOIN))
        await has_begun.wait()
        for number in range(1, FLIPS + 1):
            write(tmp_path, number)
            for name in DATASETS:
                await refreshed(two, name)
        # By now everything is due, and another flip deletes unread chunks.
        due_s = time.monotonic() + KEPT_S
        await eventually(lambda: at_time(due_s), "all of it is due", KEPT_S + 60)
        for name in DATASETS:
            await refreshed(two, name)
        assert not began_with & folders(one)
        may_run.set()
        answer = await statement
        assert answer.status_code == 200, answer.text
        assert answer.json() == [{"n": ROWS, "s": 0}]

        async def are_gone() -> bool:
            await refreshed(two, "orders")
            await refreshed(two, "people")
            return not any(each.exists() for each in began_with)

        await eventually(are_gone, "the rows that it read are removed", 100)
