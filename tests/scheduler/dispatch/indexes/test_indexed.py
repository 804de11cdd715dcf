"""Searches by the indexes of executors return what the same statements return without them."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.changes import LogEntry, Op
from caraway_core.errors import NotDistributableError
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import Keys, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_executor.indexes.searching import _SearchedWords
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_search.vectors.segment import VectorIndexSpec, VectorSegment
from tests.kit.changes import bucketed, logged
from tests.kit.clusters import EAGER, in_process_cluster
from tests.kit.engine import memory, snapshot
from tests.kit.stored import stored
from tests.scheduler.dispatch.indexes.indexed_searches import (
    T,
    alone,
    answer,
    by_words,
    expected,
)

RANDOM = np.random.default_rng(1)
VECTORS = RANDOM.integers(-3, 4, (200, 4)).astype(np.float32)
WORDS = ["red", "green", "blue", "car", "cars", "house", "running", ""]
ROWS = pa.table(
    {
        "k": pa.array(range(200)),
        "g": pa.array([n % 11 for n in range(200)]),
        "vec": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4),
        "text": pa.array([
            None if n % 50 == 9 else " ".join(filter(None, RANDOM.choice(np.array(WORDS), 5)))
            for n in range(200)
        ]),
    }
)  # fmt: skip
QUERY = np.array([1, 2, -1, 0.5], np.float32)
WHERES = (None, "(t.text LIKE '%car%' AND k > 40)", "(k < 0)")
IN_OTHERS = "(k IN (SELECT k + 1 FROM t WHERE g < 3))"


def nearest(where: str | None, limit: int) -> Statement:
    """The nearest rows, in SQL and as an order."""
    condition = "" if where is None else f"WHERE {where}"
    sql = (
        "SELECT g, k, caraway_vector_score(vec, $vector, 'cosine') AS score FROM t "
        f"{condition} ORDER BY score DESC NULLS LAST, k NULLS LAST LIMIT {limit}"
    )
    vector = ArrowValue.from_array(pa.array([QUERY.tobytes()], pa.binary()))
    by = VectorOrder("vec", QUERY.tobytes())
    order = IndexOrder(T, by, ("g", "k"), ("k",), where, limit)
    return Statement(sql, {"vector": vector}, index=order)


async def entries(folder: Path, spec: StoredTable) -> tuple[LogEntry, ...]:
    vectors = VECTORS.tolist()
    first = [
        *((Op.DELETE, {"k": k}) for k in range(0, 200, 7)),
        *(
            (Op.UPSERT, {"k": k, "g": 1, "vec": vectors[k + 1], "text": "blue car"})
            for k in range(100)
        ),
    ]
    second = [
        (Op.UPSERT, {"k": k, "g": 2, "vec": [1, 2, -1, 0], "text": "red"}) for k in range(25, 230)
    ]
    third = [(Op.DELETE, {"k": k}) for k in range(0, 230, 3)]
    found = [
        await logged(folder, spec, *each, number=n) for n, each in enumerate((first, second, third))
    ]
    return tuple(found)


@pytest.mark.parametrize(
    ("policy", "is_keyed"),
    [(EAGER, True), (EAGER, False), (Policy(), True)],
    ids=["keyed-shares", "plain-shares", "keyed-whole"],
)
async def test_indexes_find_what_statements_find(
    tmp_path: Path, policy: Policy, is_keyed: bool
) -> None:
    folder = tmp_path / "chunks"
    if is_keyed:
        spec = await bucketed(folder, ROWS, 7, "k", Keys(("k",)))
        log = await entries(folder, spec)
    else:
        spec, log = await stored(folder, ROWS, 7), ()
    tables = {"t": spec}
    async with (
        alone(spec) as one,
        in_process_cluster(tmp_path, tables, executors=3, policy=policy) as cluster,
    ):
        dispatches: Sequence[Dispatch] = (one, cluster.dispatch)
        for count in (0, 3, 1)[: 3 if log else 1]:
            for dispatch in dispatches:
                dispatch.follow(spec, log[:count])
            for where, limit in ((None, 0), *((where, 20) for where in (*WHERES, IN_OTHERS))):
                statement = nearest(where, limit)
                wanted = await answer(one, replace(statement, index=None))
                for dispatch in dispatches:
                    assert await answer(dispatch, statement) == wanted
            for where in WHERES[: 1 + (count == 3)]:
                assert await by_words(dispatches, where) == await expected(one, where)


async def test_a_search_survives_the_loss_of_an_executor(tmp_path: Path) -> None:
    spec = await stored(tmp_path / "chunks", ROWS, 9)
    statement = nearest(None, 20)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        wanted = await answer(cluster.dispatch, replace(statement, index=None))
        assert await answer(cluster.dispatch, statement) == wanted
        await cluster.fleet.lose(ExecutorId("e2"))
        assert await answer(cluster.dispatch, statement) == wanted


async def test_a_table_without_versions_is_searched_as_sql_says(tmp_path: Path) -> None:
    rows = {"k": list(range(9)), "g": [1] * 9, "vec": VECTORS[:9].tolist()}
    tables = {"t": memory(**rows)}
    statement = nearest(None, 5)
    async with in_process_cluster(tmp_path, tables) as cluster:
        wanted = await answer(cluster.dispatch, replace(statement, index=None))
        assert len(wanted) == 5
        assert await answer(cluster.dispatch, statement) == wanted
        assert statement.index is not None
        required = replace(statement, index=replace(statement.index, is_required=True))
        with pytest.raises(NotDistributableError, match="'t' is not an accelerated dataset"):
            await answer(cluster.dispatch, required)
        local = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("local"))
        await local.install(snapshot(tables))
        with pytest.raises(NotDistributableError, match="'t' is not an accelerated dataset"):
            await answer(local, required)
        assert local.executors()[0].failed_tasks == 0
        await local.aclose()


async def test_segments_are_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    build = VectorSegment.build

    def counted_build(spec: VectorIndexSpec, column: Any) -> VectorSegment:
        built.append(spec)
        return build(spec, column)

    monkeypatch.setattr(VectorSegment, "build", counted_build)
    spec = await stored(tmp_path / "chunks", ROWS, 9)
    async with alone(spec) as dispatch:
        first = await answer(dispatch, nearest(None, 20))
        count = len(built)
        gc.collect()
        assert await answer(dispatch, nearest(None, 20)) == first
    assert len(built) == count > 0


async def test_the_words_of_a_query_are_counted_once_for_a_state_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[object] = []
    numbers = _SearchedWords.numbers

    def counted_numbers(self: _SearchedWords) -> list[int]:
        counts.append(self)
        return numbers(self)

    monkeypatch.setattr(_SearchedWords, "numbers", counted_numbers)
    spec = await bucketed(tmp_path / "chunks", ROWS, 7, "k", Keys(("k",)))
    log = await entries(tmp_path / "chunks", spec)
    tables = {"t": spec}
    async with in_process_cluster(tmp_path, tables, executors=2, policy=EAGER) as cluster:

        async def search(text: str, limit: int) -> int:
            before = len(counts)
            order = IndexOrder(
                T, WordOrder(("text",), text, "english", (1.0,)), ("k",), ("k",), None, limit
            )
            statement = Statement("SELECT 'no index'", {}, index=replace(order, is_required=True))
            assert len(await answer(cluster.dispatch, statement)) == limit
            return len(counts) - before

        assert await search("red car", 3) == 2
        assert await search("red car", 5) == 0
        assert await search("red house", 3) == 2
        cluster.dispatch.follow(spec, log[:1])
        assert await search("red car", 3) == 2


async def test_a_share_with_most_of_the_best_rows_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = pa.array([[1.0, n / 400] for n in range(400)], pa.list_(pa.float32(), 2))
    rows = pa.table({"k": pa.array(range(400)), "vec": vectors})
    # Two chunks in the order of the vectors, so one executor has all of the best rows.
    spec = await stored(tmp_path / "chunks", rows, 2)
    limits: list[int | None] = []
    execute = LocalExecutor.execute

    async def noted(self: LocalExecutor, query_id: QueryId, statement: Statement) -> BatchStream:
        limits.append(statement.index.limit if statement.index else None)
        return await execute(self, query_id, statement)

    monkeypatch.setattr(LocalExecutor, "execute", noted)
    by = VectorOrder("vec", np.array([1, 0], np.float32).tobytes())
    statement = Statement("SELECT k", {}, index=IndexOrder(T, by, ("k",), ("k",), None, 100))
    async with in_process_cluster(tmp_path, {"t": spec}, executors=2, policy=EAGER) as cluster:
        asked = []
        for _ in range(4):
            limits.clear()
            found = await answer(cluster.dispatch, statement)
            assert [row["k"] for row in found] == list(range(100))
            asked.append(sorted(each for each in limits if each))
        # After some searches that had to ask again, all rows are requested at once.
        assert asked == [[65, 65, 100], [65, 65, 100], [100, 100], [100, 100]]
