"""Logs of accelerated datasets in a cluster: in stages, whole, and during changes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import LogEntry, Op
from caraway_core.errors import ExecutionError
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.protocols.fleet import Task
from caraway_core.statements import Statement
from caraway_core.tables import Keys, StoredTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.changes import bucketed, logged
from tests.kit.clusters import EAGER, InProcessCluster, in_process_cluster
from tests.kit.engine import memory, snapshot
from tests.kit.stored import stored

ROWS = pa.table({"k": pa.array(range(3000)), "g": pa.array([n % 11 for n in range(3000)])})
T = TableName("t")
KEYS = Keys(("k",))
STATEMENTS = (
    "SELECT g, sum(k) AS s, count(*) AS n FROM t GROUP BY g ORDER BY g",
    "SELECT count(*) AS n, sum(a.g + b.g) AS g FROM t a JOIN t b ON a.k = b.k + 1",
    "SELECT count(*) AS n FROM t WHERE k NOT IN (SELECT k FROM t WHERE g < 5)",
    "SELECT count(*) AS n, max(k) AS k FROM v",
    "SELECT name, count(*) AS n FROM v JOIN names USING (g) GROUP BY name ORDER BY name",
    "SELECT * FROM t WHERE k BETWEEN 95 AND 105 ORDER BY k",
    "EXPLAIN ANALYZE SELECT g, count(*) FROM t GROUP BY g",
)


async def entries(folder: Path, spec: StoredTable, count: int) -> list[LogEntry]:
    found = []
    for n in range(count):
        changes: list[Any] = [
            (Op.DELETE, {"k": 300 + n}),
            (Op.UPSERT, {"k": 5000 + n, "g": n % 11}),
        ]
        changes += [(Op.UPSERT, {"k": 10 * k + n, "g": 6}) for k in range(20)]
        found.append(await logged(folder, spec, *changes, number=n))
    return found


def tables(spec: StoredTable) -> dict[str, TableSpec | str]:
    names = memory(g=list(range(11)), name=[f"group {n}" for n in range(11)])
    return {"t": spec, "v": "SELECT * FROM t WHERE k > 50", "names": names}


async def answers(of: Any, sqls: Sequence[str]) -> list[list[dict[str, Any]]]:
    found = []
    for sql in sqls:
        stream = await of.execute(new_query_id(), Statement(sql, {}))
        found.append([row async for batch in stream for row in batch.to_pylist()])
    return found


@pytest.mark.parametrize("policy", [EAGER, Policy()], ids=["in-stages", "whole"])
async def test_a_cluster_answers_as_one_process_does(tmp_path: Path, policy: Policy) -> None:
    spec = await bucketed(tmp_path / "chunks", ROWS, 7, "k", KEYS)
    log = await entries(tmp_path / "chunks", spec, 4)
    alone = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("local"))
    assert not await alone.install(snapshot(tables(spec)))
    async with in_process_cluster(tmp_path, tables(spec), executors=3, policy=policy) as cluster:
        for count in (0, 2, 4, 1):
            for dispatch in (alone, cluster.dispatch):
                dispatch.follow(spec, tuple(log[:count]))
            found = await answers(cluster.dispatch, STATEMENTS)
            wanted = await answers(alone, STATEMENTS)
            assert found[:-1] == wanted[:-1]
            assert ("3 tasks" in str(found[-1])) == (policy is EAGER)
    await alone.aclose()


async def test_a_load_counts_rows_over_all_executors(tmp_path: Path) -> None:
    spec = await bucketed(tmp_path / "chunks", ROWS, 7, "k", KEYS)
    log = tuple(await entries(tmp_path / "chunks", spec, 3))
    plain = await stored(tmp_path / "chunks", ROWS, 5, "plain")
    loose = replace(await stored(tmp_path / "chunks", ROWS, 5, "loose"), keys=KEYS)
    more = (await logged(tmp_path / "chunks", loose, (Op.DELETE, {"k": 7}), number=9),)
    for number, policy in enumerate((EAGER, Policy())):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with in_process_cluster(folder, {"m": memory(k=[1])}, policy=policy) as cluster:
            load = cluster.dispatch.load
            assert await load(T, spec) == 3000
            assert await load(T, spec, log) == 3000
            assert await load(T, plain) == 3000
            assert await load(T, loose, more) == 2999


async def test_a_key_that_is_there_twice_is_found_wherever_it_is(tmp_path: Path) -> None:
    rows = pa.concat_tables([ROWS, ROWS.slice(1234, 1)])
    spec = await bucketed(tmp_path / "chunks", rows, 7, "k", KEYS)
    for number, policy in enumerate((EAGER, Policy())):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with in_process_cluster(folder, {"m": memory(k=[1])}, policy=policy) as cluster:
            with pytest.raises(ExecutionError, match=r"\(k\) = 1234 is duplicated"):
                await cluster.dispatch.load(T, spec)


async def test_a_log_beside_a_table_that_is_not_cut_is_read_whole(tmp_path: Path) -> None:
    spec = replace(await stored(tmp_path / "chunks", ROWS, 6), keys=KEYS)
    log = await entries(tmp_path / "chunks", spec, 2)
    sql = "SELECT count(*) AS n, sum(g) AS g FROM t"
    async with in_process_cluster(tmp_path, {"t": spec}) as cluster:
        assert "2 tasks" in await cluster.explain(sql)
        cluster.dispatch.follow(spec, tuple(log))
        (found,) = await answers(cluster.dispatch, [sql])
        alone = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("local"))
        await alone.install(snapshot({"t": spec}))
        alone.follow(spec, tuple(log))
        assert [found] == await answers(alone, [sql])
        await alone.aclose()


async def test_queries_under_changes_see_whole_entries(tmp_path: Path) -> None:
    """Each entry moves 1 from one row to another, so a wrong sum reveals a partial read."""
    rows = pa.table({"k": list(range(64)), "g": [100] * 64})
    spec = await bucketed(tmp_path / "chunks", rows, 8, "k", KEYS)
    log: list[LogEntry] = []
    amounts = [100] * 64
    for n in range(30):
        one, other = (7 * n) % 64, (11 * n + 5) % 64
        amounts[one] -= 1
        amounts[other] += 1
        changes = [(Op.UPSERT, {"k": k, "g": amounts[k]}) for k in (one, other)]
        log.append(await logged(tmp_path / "chunks", spec, *changes, number=n))
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:

        async def ask() -> None:
            for _ in range(10):
                found = await cluster.execute("SELECT sum(a.g) AS s FROM t a JOIN t b USING (k)")
                assert found.to_pylist() == [{"s": 6400}]

        asking = [asyncio.ensure_future(ask()) for _ in range(3)]
        for count in range(1, len(log) + 1):
            cluster.dispatch.follow(spec, tuple(log[:count]))
            await cluster.execute("SELECT count(*) FROM t")
        await asyncio.gather(*asking)
        found = await cluster.execute("SELECT g FROM t ORDER BY k")
        assert found.column("g").to_pylist() == amounts


async def test_an_executor_that_is_lost_has_its_changes_applied_elsewhere(tmp_path: Path) -> None:
    spec = await bucketed(tmp_path / "chunks", ROWS, 9, "k", KEYS)
    log = tuple(await entries(tmp_path / "chunks", spec, 3))
    sql = STATEMENTS[:1]
    async with in_process_cluster(tmp_path, tables(spec), executors=3) as cluster:
        cluster.dispatch.follow(spec, log)
        wanted = await answers(cluster.dispatch, sql)
        cluster.fleet.before = _losing(cluster, "e2")
        assert await answers(cluster.dispatch, sql) == wanted
        assert len(cluster.membership.ready()) == 2
        assert await cluster.dispatch.load(T, spec, log) == 3000


def _losing(cluster: InProcessCluster, name: str) -> Any:
    lost: list[str] = []

    async def lose(executor_id: ExecutorId, _task: Task) -> None:
        if executor_id == name and not lost:
            lost.append(name)
            await cluster.fleet.lose(executor_id)

    return lose
