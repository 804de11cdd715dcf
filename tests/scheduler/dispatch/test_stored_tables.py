"""Accelerated datasets in a cluster: each executor reads and keeps its own chunks."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Task
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.stages import Policy
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.engine import snapshot
from tests.kit.stored import path_of, stored
from tests.kit.tables import parquet

ROWS = pa.table({"k": pa.array(range(3000)), "g": pa.array([n % 11 for n in range(3000)])})
SUM = "SELECT g, sum(k) AS s, count(*) AS n FROM t GROUP BY g ORDER BY g"
SUMS = [{"g": g, "s": sum(range(g, 3000, 11)), "n": len(range(g, 3000, 11))} for g in range(11)]
T = TableName("t")
E2 = ExecutorId("e2")


def held(cluster: InProcessCluster, executor: str) -> int:
    """Count the bytes of chunks that an executor keeps."""
    worker = cluster.fleet._lives[ExecutorId(executor)].worker
    return int(worker._room.taken_bytes)


async def table(folder: Path, count: int = 12, key: str = "t") -> StoredTable:
    return await stored(folder / "chunks", ROWS, count, key)


async def test_each_executor_reads_its_own_chunks_and_keeps_them(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    total = sum(each.size_bytes for each in spec.chunks)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        assert (await cluster.execute("SELECT count(*) AS n FROM t")).to_pylist() == [{"n": 3000}]

        sizes = [held(cluster, each) for each in ("e1", "e2", "e3")]
        assert sum(sizes) == total
        assert max(sizes) < total / 2
        for number in range(12):
            path_of(spec, number).unlink()
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        described = await cluster.fleet.describe("here")
        assert [each.holds for each in described] == [(T,)] * 3


async def test_nothing_is_read_when_a_catalog_comes(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    for number in range(12):
        path_of(spec, number).unlink()
    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        text = await cluster.explain(SUM)

    assert "2 tasks on e1, e2" in text
    assert "reads its share of t" in text


async def test_a_small_table_is_read_whole_by_each_task_that_needs_it(tmp_path: Path) -> None:
    small = pa.table({"g": pa.array(range(11)), "name": [f"group {n}" for n in range(11)]})
    tables: dict[str, TableSpec] = {
        "t": await table(tmp_path),
        "files": parquet(tmp_path / "files", ROWS, 3),
        "names": await stored(tmp_path / "chunks", small, 1, "names"),
    }
    sql = "SELECT name, count(*) AS n FROM {} JOIN names USING (g) GROUP BY name ORDER BY name"
    wanted = sorted(
        ({"name": f"group {each['g']}", "n": each["n"]} for each in SUMS),
        key=lambda row: str(row["name"]),
    )
    policies = (EAGER, Policy(small_table_bytes=4000))
    for number, policy in enumerate(policies):
        folder = tmp_path / f"cluster-{number}"
        folder.mkdir()
        async with in_process_cluster(folder, tables, policy=policy) as cluster:
            for each in ("t", "files"):
                assert (await cluster.execute(sql.format(each))).to_pylist() == wanted


async def test_a_whole_statement_reads_all_chunks_on_its_executor(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, policy=Policy()) as cluster:
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        assert sorted([held(cluster, "e1"), held(cluster, "e2")]) == [
            0,
            sum(each.size_bytes for each in spec.chunks),
        ]


async def test_a_lost_executor_has_its_chunks_read_elsewhere(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, {"t": await table(tmp_path)}, executors=3) as cluster:
        is_lost = False

        async def lose(executor_id: ExecutorId, _task: Task) -> None:
            nonlocal is_lost
            if executor_id == E2 and not is_lost:
                is_lost = True
                await cluster.fleet.lose(E2)

        cluster.fleet.before = lose
        assert (await cluster.execute(SUM)).to_pylist() == SUMS
        assert is_lost
        assert (await cluster.execute(SUM)).to_pylist() == SUMS


async def test_a_new_version_is_read_as_soon_as_its_catalog_is_there(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, {"t": await table(tmp_path)}) as cluster:
        assert (await cluster.execute("SELECT count(*) AS n FROM t")).to_pylist() == [{"n": 3000}]
        less = await stored(tmp_path / "chunks", ROWS.slice(0, 1000), 4, "less")
        assert not await cluster.install(snapshot({"t": less}, version=2))

        assert (await cluster.execute("SELECT count(*) AS n FROM t")).to_pylist() == [{"n": 1000}]


async def test_a_missing_chunk_fails_the_query_and_names_the_dataset(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    path_of(spec, 7).unlink()
    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        with pytest.raises(
            ExecutionError, match=r"dataset 't': a part of its stored rows is damaged or missing"
        ):
            await cluster.execute(SUM)


async def test_shares_of_files_and_of_chunks_meet_in_one_query(tmp_path: Path) -> None:
    one_file = parquet(tmp_path / "files", ROWS, 1)
    tables: dict[str, TableSpec] = {"t": await table(tmp_path), "f": one_file}
    async with in_process_cluster(tmp_path, tables) as cluster:
        for sql in (
            "SELECT count(*) AS n FROM t JOIN f USING (k)",
            "SELECT count(*) / 2 AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM f) AS u",
            "SELECT count(*) AS n FROM t a JOIN t b USING (k)",
        ):
            assert (await cluster.execute(sql)).to_pylist() == [{"n": 3000}]


async def test_a_statement_whose_parts_cannot_be_planned_runs_whole(tmp_path: Path) -> None:
    rows = pa.table({"g": [n % 3 for n in range(300)], "v": range(300)})
    spec = await stored(tmp_path / "chunks", rows, 4)
    refused: list[str] = []

    async def refuse(_executor_id: ExecutorId, task: Task) -> None:
        refused.append(task.stage)
        raise InvalidQueryError("column 'c2' not found")

    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        cluster.fleet.before = refuse
        found = await cluster.execute("SELECT g, sum(v) AS s FROM t GROUP BY g ORDER BY g")
        assert found.to_pylist() == [{"g": g, "s": sum(range(g, 300, 3))} for g in range(3)]
    assert refused
