"""Accelerated datasets of a runtime with three in-process executors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_acceleration.upkeep import compaction
from caraway_gateway.composition.backend import Backend
from tests.gateway.api import accelerating, refusing_changes, sending_changes
from tests.gateway.api.accelerating import FIRST, at_version, refresh
from tests.gateway.api.change_manifests import KEYS, TAKING
from tests.gateway.api.failing_refreshes import failed
from tests.gateway.api.sending_changes import event, ready, rows, send
from tests.gateway.api.writing import KEYS as WRITE_KEYS
from tests.gateway.api.writing import LOGGED, filled
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running


@asynccontextmanager
async def on_executors(
    folder: Path, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Running, InProcessCluster]]:
    apart = folder / "cluster"
    apart.mkdir(exist_ok=True)
    async with in_process_cluster(apart, {}, executors=3, policy=EAGER) as cluster:
        async with running(folder, manifest, backend=Backend(cluster.dispatch)) as runtime:
            yield runtime, cluster


async def test_inserted_rows_are_in_the_source_and_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_executors(tmp_path, TAKING + KEYS, monkeypatch) as (runtime, _):
        runtime.api.headers.update({"x-api-key": "writer"})
        await at_version(runtime, 1)
        for number in range(3):
            made = await runtime.sql(f"INSERT INTO orders VALUES ({number}, 'v'), (10, 'w')")
            assert (made.status_code, made.json()) == (200, [{"count": 2}]), made.text
            assert await rows(runtime, "SELECT count(*) FROM orders") == [(2 * number + 2,)]
        sql = "INSERT INTO orders SELECT id + 100, v FROM orders"
        job = await runtime.api.post("/v1/queries", json={"sql": sql})
        assert job.status_code == 202, job.text
        url, done = f"/v1/queries/{job.json()['query_id']}?wait=60", {"status": "PENDING"}
        while done["status"] in ("PENDING", "RUNNING"):
            done = (await runtime.api.get(url)).json()
        assert done["status"] == "SUCCEEDED", done
        assert await rows(runtime, "SELECT count(*) FROM orders") == [(12,)]
        assert await runtime.own("SELECT count(*) AS n FROM caraway_source.orders") == [{"n": 12}]


async def test_changes_that_break_a_unique_index_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = refusing_changes.UNIQUE
    async with on_executors(tmp_path, text, monkeypatch) as (runtime, _):
        await ready(runtime)
        await send(runtime, *(event("c", number, f"v{number}") for number in range(50)))
        for number in range(100, 110):
            told = await refusing_changes.refused(runtime, event("c", number, "v7"))
            assert "(v) = 'v7' would be duplicated" in told
        await send(runtime, event("d", 7), event("c", 100, "v7"))
        assert await rows(runtime, "SELECT id FROM orders WHERE v = 'v7'") == [(100,)]
        assert await rows(runtime, "SELECT count(*), count(DISTINCT v) FROM orders") == [(50, 50)]


@pytest.mark.parametrize("key", ["primary_key: id", "indexes: {id: unique}"])
async def test_duplicate_rows_are_found_on_any_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    accelerating.write(tmp_path, 5000)
    lines = (key, "partition_by: ['bucket(6, id)']")
    text = accelerating.manifest(*lines)
    async with on_executors(tmp_path, text, monkeypatch) as (runtime, _):
        await at_version(runtime, 1)
        held = await rows(runtime, "SELECT count(*), sum(rows) FROM runtime.partitions")
        assert held == [(6, 5000)]
        ids = [*range(5000), 4321]
        table = pa.table({"id": ids, "t": [FIRST] * 5001, "v": ["x"] * 5001})
        pq.write_table(table, tmp_path / "orders.parquet", row_group_size=100)
        await refresh(runtime)
        assert "(id) = 4321 is duplicated" in await failed(runtime)
        assert await rows(runtime, "SELECT v FROM orders WHERE id = 4321") == [("v1",)]


async def test_changes_are_correct_during_compactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 20)
    text = sending_changes.manifest()
    overtaken = refusing_changes.Overtaken(monkeypatch, event("c", 100, "late"))
    async with on_executors(tmp_path, text, monkeypatch) as (runtime, _):
        await ready(runtime)
        overtaken.runtime = runtime
        await send(runtime, *(event("c", number, "x") for number in range(30)))
        await eventually(
            lambda: _is(runtime, "SELECT sum(rows) FROM runtime.partitions", 30),
            "the log is part of the base",
        )
        assert await rows(runtime, "SELECT count(*) FROM orders") == [(30 + overtaken.times,)]


async def _is(runtime: Running, sql: str, number: int) -> bool:
    return bool(await rows(runtime, sql) == [(number,)])


async def test_statements_change_rows_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_executors(tmp_path, LOGGED + WRITE_KEYS, monkeypatch) as (runtime, _):
        await filled(runtime)

        async def changed(sql: str) -> int:
            made = await runtime.sql(sql)
            assert made.status_code == 200, made.text
            (row,) = made.json()
            return int(row["count"])

        sql = (
            "INSERT INTO items SELECT value, 'v' || value, value + 0 FROM generate_series(6, 3000)"
        )
        assert await changed(sql) == 2995
        for table in ("items", "plain", "kept"):
            sql = f"UPDATE {table} SET v = 'odd' WHERE id % 2 = 1 AND id < 6"
            assert await changed(sql) == 3
            assert await changed(f"DELETE FROM {table} WHERE id IN (1, 2)") == 2
            found = await rows(runtime, f"SELECT id, v FROM {table} WHERE id < 6 ORDER BY id")
            assert found == [(3, "odd"), (4, "it's"), (5, "odd")]
        sql = (
            "UPDATE items SET n = n + 1, id = id + 10000 WHERE id IN (SELECT id FROM items "
            "WHERE id > 2000) AND v <> 'odd'"
        )
        assert await changed(sql) == 1000
        sql = "SELECT count(*), sum(id), max(n) FROM items WHERE id > 2000"
        assert await rows(runtime, sql) == [(1000, sum(range(12001, 13001)), 3001.0)]
        assert await rows(runtime, "SELECT count(*) FROM items") == [(2998,)]
        made = await runtime.sql("UPDATE items SET id = 3 WHERE id = 12001")
        assert made.status_code == 400, made.text
