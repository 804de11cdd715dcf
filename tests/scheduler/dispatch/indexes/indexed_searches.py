"""Searches over indexed shares, with the answer of one index over all rows."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.index_orders import IndexOrder, WordOrder
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.parsing import parse
from tests.kit.engine import snapshot
from tests.kit.plain_bm25 import Oracle

T = TableName("t")
TEXTS = ("red car", "+house -blue", '"green car" gree*', "rde~2")


async def answer(dispatch: Dispatch, statement: Statement) -> list[dict[str, Any]]:
    stream = await dispatch.execute(new_query_id(), statement)
    return [row async for batch in stream for row in batch.to_pylist()]


@asynccontextmanager
async def alone(spec: StoredTable) -> AsyncIterator[InProcessDispatch]:
    dispatch = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("local"))
    assert not await dispatch.install(snapshot({"t": spec}))
    yield dispatch
    await dispatch.aclose()


async def counted(dispatch: Dispatch, by: WordOrder) -> tuple[int, ...]:
    order = IndexOrder(T, by)
    (row,) = await answer(dispatch, Statement("SELECT [0] AS statistics", {}, index=order))
    return tuple(row["statistics"])


async def matching(dispatch: Dispatch, text: str, where: str | None) -> list[dict[str, Any]]:
    """The best rows by words, which are the same in one step and in two."""
    by = WordOrder(("text",), text, "english", (1.0,))
    order = IndexOrder(T, by, ("k", "text"), ("k",), where, 9, is_required=True)
    at_once = await answer(dispatch, Statement("SELECT 'no index'", {}, index=order))
    by = replace(by, statistics=await counted(dispatch, by))
    order = IndexOrder(T, by, ("k", "text"), ("k",), where, 9)
    assert at_once == await answer(dispatch, Statement("SELECT 'no index'", {}, index=order))
    return at_once


async def by_words(dispatches: Sequence[Dispatch], where: str | None) -> list[Any]:
    """The rows by words, which all dispatches find alike."""
    found = [[await matching(each, text, where) for text in TEXTS] for each in dispatches]
    assert found[0] == found[1]
    return found[0]


async def expected(dispatch: Dispatch, where: str | None) -> list[Any]:
    """The rows by words, from all rows and by a plain BM25."""
    rows = await answer(dispatch, Statement("SELECT k, text FROM t ORDER BY k", {}))
    condition = "" if where is None else f"WHERE {where}"
    passing = await answer(dispatch, Statement(f"SELECT k FROM t {condition}", {}))
    ks = {row["k"] for row in passing}
    analyzer = Analyzer()
    oracle = Oracle(
        {"text": 1.0}, {"text": [r["text"] for r in rows]}, [True] * len(rows), analyzer
    )
    found = []
    for text in TEXTS:
        scores = oracle.scores(parse(text, analyzer)).items()
        best = sorted((-score, rows[n]["k"], n) for n, score in scores if rows[n]["k"] in ks)[:9]
        found.append([rows[n] | {"score": -score} for score, _, n in best])
    return found
