"""Indexes, statements and brute force find the same in random documents, changes and filters."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.changes import Op
from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import Keys
from caraway_scheduler.dispatch.indexes import share_limits
from tests.kit.changes import bucketed, logged
from tests.kit.clusters import EAGER, in_process_cluster
from tests.scheduler.dispatch.indexes import indexed_searches as indexed

T = TableName("t")
WORDS = "red green blue car cars house running Straße 東京".split()
Row = dict[str, Any]


def document(chance: random.Random, key: int) -> Row:
    vector: list[float] | None = [float(chance.randint(-3, 3)) for _ in range(4)]
    if chance.random() < 0.1:
        vector = None
    text = " ".join(chance.choices(WORDS, k=chance.randint(0, 6)))
    return {
        "k": key,
        "g": chance.randint(0, 9),
        "vec": vector,
        "text": None if chance.random() < 0.1 else text,
    }


def filters(chance: random.Random) -> tuple[str | None, str | None]:
    """Two filters; the second may be one that no index answers."""
    plain = chance.choice([
        None, f"(g = {chance.randint(0, 9)})", "(text LIKE '%car%' OR vec IS NULL)", "(k % 50 = 3)",
    ])  # fmt: skip
    return plain, chance.choice([plain, "(k IN (SELECT k + 1 FROM t WHERE g < 5))"])


def brute(rows: list[Row], passing: set[int], query: Any, limit: int) -> list[tuple[int, float]]:
    """The nearest rows by their cosine, one by one."""
    found = []
    for row in rows:
        vector = np.array(row["vec"] or [], np.float64)
        if row["k"] in passing and vector.any():
            wide = np.array(query, np.float64)
            lengths = np.sqrt((vector * vector).sum()) * np.sqrt((wide * wide).sum())
            found.append((row["k"], float((vector * wide).sum() / lengths)))
    return sorted(found, key=lambda each: (-each[1], each[0]))[:limit]


def nearest(query: Any, where: str | None, limit: int) -> Statement:
    condition = "" if where is None else f"WHERE {where}"
    packed = np.array(query, np.float32).tobytes()
    return Statement(
        "SELECT k, caraway_vector_score(vec, $vector, 'cosine') AS score FROM t "
        f"{condition} ORDER BY score DESC NULLS LAST, k LIMIT {limit}",
        {"vector": ArrowValue.from_array(pa.array([packed], pa.binary()))},
        index=IndexOrder(T, VectorOrder("vec", packed), ("k",), ("k",), where, limit),
    )


async def check(dispatches: list[Dispatch], chance: random.Random) -> None:
    first = dispatches[0]
    rows = await indexed.answer(first, Statement("SELECT * FROM t", {}))
    plain, where = filters(chance)
    condition = "" if where is None else f"WHERE {where}"
    passing = await indexed.answer(first, Statement(f"SELECT k FROM t {condition}", {}))
    query = [chance.uniform(-1, 1) for _ in range(4)]
    limit = chance.choice([1, 5, 40])
    wanted = brute(rows, {row["k"] for row in passing}, query, limit)
    statement = nearest(np.array(query, np.float32).tolist(), where, limit)
    by_sql = await indexed.answer(first, replace(statement, index=None))
    scored = [row for row in by_sql if row["score"] is not None]
    assert [row["k"] for row in scored] == [key for key, _ in wanted]
    np.testing.assert_allclose([row["score"] for row in scored], [each for _, each in wanted], 1e-6)
    for dispatch in dispatches:
        assert await indexed.answer(dispatch, statement) == scored
    assert await indexed.by_words(dispatches, plain) == await indexed.expected(first, plain)


@pytest.mark.parametrize("seed", range(4))
async def test_all_ways_find_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    if seed % 2:
        # Nearly always, shares have more rows than requested, and are asked again.
        monkeypatch.setattr(share_limits, "_FEWEST", 1)
        monkeypatch.setattr(share_limits, "_DEVIATIONS", -1)
        monkeypatch.setattr(share_limits, "_MOST_MISSED", 1.0)
    folder = tmp_path / "chunks"
    first = [document(chance, key) for key in range(chance.choice([1, 60, 150]))]
    types = {"k": pa.int64(), "g": pa.int64(), "vec": pa.list_(pa.float32(), 4),
             "text": pa.string()}  # fmt: skip
    spec = await bucketed(
        folder, pa.Table.from_pylist(first, pa.schema(types)), 3, "k", Keys(("k",))
    )
    log: list[Any] = []
    async with (
        indexed.alone(spec) as one,
        in_process_cluster(tmp_path, {"t": spec}, executors=2, policy=EAGER) as cluster,
    ):
        await check([one, cluster.dispatch], chance)
        for number in range(2):
            changes = [
                (Op.DELETE, {"k": key}) if chance.random() < 0.4
                else (Op.UPSERT, document(chance, key))
                for key in chance.sample(range(180), 40)
            ]  # fmt: skip
            log.append(await logged(folder, spec, *changes, number=number))
            for dispatch in (one, cluster.dispatch):
                dispatch.follow(spec, tuple(log))
            await check([one, cluster.dispatch], chance)
