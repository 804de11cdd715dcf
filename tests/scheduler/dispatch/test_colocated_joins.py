"""Co-located datasets are joined without an exchange, with the answers of one node."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Task
from caraway_core.tables import TableSpec
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory, rows, session
from tests.kit.stored import parted

JOINS = (
    "SELECT o.k, o.v, i.w FROM o JOIN i ON o.k = i.k",
    "SELECT o.k, o.v, i.w FROM o JOIN i ON i.k = o.k AND o.v > i.w",
    "SELECT o.k, i.k AS ik, o.v, i.w FROM o LEFT JOIN i ON o.k = i.k AND i.w > 20",
    "SELECT o.k, i.k AS ik, o.v, i.w FROM o RIGHT JOIN i ON o.k = i.k AND o.v > 20",
    "SELECT o.k, i.k AS ik, o.v, i.w FROM o FULL JOIN i ON o.k = i.k AND o.v = i.w",
    "SELECT k, v FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND i.w < 30)",
    "SELECT k, v FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.k = o.k)",
    "SELECT k, v FROM o WHERE k IN (SELECT k FROM i WHERE w < 10)",
    "SELECT a.k, a.v, b.v AS bv FROM o a JOIN o b ON a.k = b.k",
    "SELECT x.k, x.n, y.m FROM (SELECT k, count(*) AS n FROM o GROUP BY k) x "
    "JOIN (SELECT k, sum(w) AS m FROM i WHERE w > 5 GROUP BY k) y ON x.k = y.k",
    "SELECT o.k, count(*) AS n, sum(i.w) AS s FROM o JOIN i ON o.k = i.k GROUP BY o.k",
    "SELECT i.g, count(DISTINCT o.k) AS n FROM o JOIN i ON o.k = i.k GROUP BY i.g",
    "SELECT o.k, o.v, i.w, j.w AS jw FROM o JOIN i ON o.k = i.k LEFT JOIN i j "
    "ON j.k = i.k AND j.w > 40",
    "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, u) AS r FROM o",
)
IN_PLACE = "joins co-located tables without an exchange: bucket(8) of integer"


def made(seed: int) -> dict[str, pa.Table]:
    rng = random.Random(seed)

    def keys(count: int) -> pa.Array:
        return pa.array([rng.choice([None, *range(40)]) for _ in range(count)], pa.int64())

    o = {"v": [rng.randrange(50) for _ in range(150)], "k": keys(150), "u": range(150)}
    i = {"k": keys(120), "w": [rng.randrange(50) for _ in range(120)]}
    return {"o": pa.table(o), "i": pa.table({**i, "g": [w % 5 for w in i["w"]]})}


async def tables(folder: Path, of: dict[str, pa.Table], buckets: int = 8) -> dict[str, TableSpec]:
    return {
        name: await parted(folder / "chunks", each, f"bucket({buckets}, k)", key=name)
        for name, each in of.items()
    }


def bag(found: Sequence[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found)


@pytest.mark.parametrize("seed", range(3))
async def test_colocated_joins_answer_as_one_node_does(tmp_path: Path, seed: int) -> None:
    of = made(seed)
    alone = session({name: memory(**each.to_pydict()) for name, each in of.items()})
    async with in_process_cluster(tmp_path, dict(await tables(tmp_path, of)), executors=3) as one:
        for sql in JOINS:
            assert bag((await one.execute(sql)).to_pylist()) == bag(await rows(alone, sql)), sql


async def test_a_colocated_join_has_no_exchange_and_explain_says_so(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, dict(await tables(tmp_path, made(0)))) as cluster:
        for sql in JOINS[:8]:
            text = await cluster.explain(sql)
            assert IN_PLACE in text, sql
            assert "by the hash of" not in text and "@caraway" not in text, sql
        text = await cluster.explain("SELECT i.g FROM o JOIN i ON o.v = i.w")
        assert "co-located" not in text and "by the hash of" in text


async def test_tables_of_other_groups_are_not_colocated(tmp_path: Path) -> None:
    of = made(0)
    mixed = {
        "o": (await tables(tmp_path, of))["o"],
        "i": (await tables(tmp_path, of, 16))["i"],
    }
    text = of["i"].set_column(0, "k", of["i"]["k"].cast(pa.string()))
    mixed["t"] = await parted(tmp_path / "chunks", text, "bucket(8, k)", key="text")
    async with in_process_cluster(tmp_path, dict(mixed)) as cluster:
        for sql in (JOINS[0], "SELECT t.w FROM o JOIN t ON o.k = t.k"):
            assert "co-located" not in await cluster.explain(sql)


async def test_rows_of_one_key_are_grouped_without_an_exchange(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, dict(await tables(tmp_path, made(0)))) as cluster:
        assert "partial" not in await cluster.explain("SELECT k, count(*) FROM o GROUP BY k")
        assert "partial" in await cluster.explain("SELECT v, count(*) FROM o GROUP BY v")


async def test_a_colocated_join_continues_after_an_executor_is_lost(tmp_path: Path) -> None:
    of = made(1)
    alone = session({name: memory(**each.to_pydict()) for name, each in of.items()})
    async with in_process_cluster(tmp_path, dict(await tables(tmp_path, of)), executors=3) as one:
        lost = False

        async def lose(executor_id: ExecutorId, _task: Task) -> None:
            nonlocal lost
            if executor_id == ExecutorId("e2") and not lost:
                lost = True
                await one.fleet.lose(executor_id)

        one.fleet.before = lose
        found = (await one.execute(JOINS[0])).to_pylist()
        assert lost
        assert bag(found) == bag(await rows(alone, JOINS[0]))
        assert bag((await one.execute(JOINS[4])).to_pylist()) == bag(await rows(alone, JOINS[4]))
