"""Statements of a cluster are planned again, or refused, when their planning process ends."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import (
    InvalidQueryError,
    OutOfMemoryQueryError,
    PlanLostError,
    QueryTimeoutError,
    StatementRefusedError,
)
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, new_query_id
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.statements import Statement
from caraway_core.statements.questions import SqlQuestion
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.routing import Decision, PlanId, Question, Staged, Whole, Workers
from caraway_engine.stages import Measured, Policy
from caraway_executor.engines.planner import IsolatedPlanner
from tests.kit import sql_texts
from tests.kit.client_plans import plan, read
from tests.kit.engine import memory, snapshot
from tests.kit.engine_processes import fork_server
from tests.kit.tables import parquet

POLICY = Policy(small_table_bytes=0, broadcast_bytes=0, gather_bytes=0, partition_bytes=1 << 20)
WORKERS = Workers((ExecutorId("e1"), ExecutorId("e2")), 1 << 30, POLICY)
JOIN = "SELECT a.g, count(*) AS n FROM facts a JOIN more b ON a.k = b.k GROUP BY a.g"
HUGE = "SELECT count(*) FROM facts WHERE length(repeat('x', 2000000000)) > k"
"""Folded while it is planned."""
PLAN = PlanId("p")


@asynccontextmanager
async def planner(folder: Path, planning_timeout_s: float = 10.0) -> AsyncIterator[IsolatedPlanner]:
    settings = EngineSettings(2, 128 * 1024 * 1024, planning_timeout_s=planning_timeout_s)
    made = IsolatedPlanner(settings, fork_server())
    try:
        rows = pa.table({"k": range(1_000), "g": [n % 7 for n in range(1_000)]})
        tables = {name: parquet(folder / name, rows, 4) for name in ("facts", "more")}
        await made.prepare(snapshot({**tables, "m": memory(a=[1])}))
        await made.publish()
        yield made
    finally:
        await made.aclose()


async def decide(made: IsolatedPlanner, sql: str, plan: PlanId = PLAN) -> Decision:
    statement = Statement(sql, {}, catalog_version=CatalogVersion(1))
    return await made.decide(Question(plan, statement, WORKERS))


def end(made: IsolatedPlanner) -> None:
    os.kill(made.report().processes[0].pid, signal.SIGKILL)


async def test_statement_is_planned_on_where_it_was_begun(tmp_path: Path) -> None:
    async with planner(tmp_path) as made:
        decision = await decide(made, JOIN)
        assert isinstance(decision, Staged) and decision.graph.root is None
        sizes = {name: Measured(1_000, 1 << 20) for name in decision.graph.stages}
        graph = await made.advance(PLAN, sizes)
        assert graph.stages.keys() > decision.graph.stages.keys() or graph.root is not None
        assert (await made.describe(PLAN)).fragments
        await made.forget(PLAN)
        with pytest.raises(PlanLostError):
            await made.advance(PLAN, sizes)


async def test_statement_whose_planning_does_not_end_is_refused(tmp_path: Path) -> None:
    async with planner(tmp_path, 0.3) as made:
        with pytest.raises(QueryTimeoutError, match=r"not planned within 0\.3 s"):
            await decide(made, sql_texts.planned_for_long("SELECT k AS a FROM facts"))
        assert isinstance(await decide(made, JOIN), Staged)


async def test_plan_is_lost_with_its_process_and_made_again(tmp_path: Path) -> None:
    async with planner(tmp_path) as made:
        decision = await decide(made, JOIN)
        assert isinstance(decision, Staged)
        end(made)
        with pytest.raises(PlanLostError):
            await made.advance(PLAN, {})
        await made.forget(PLAN)
        # The next process has the catalog.
        assert isinstance(await decide(made, JOIN), Staged)
        assert isinstance(await decide(made, "SELECT a FROM m", PlanId("q")), Whole)


async def test_a_substrait_plan_is_written_in_a_process(tmp_path: Path) -> None:
    encoded = plan(read("m", a="i64"), "found")
    async with planner(tmp_path) as made:
        sql = await made.ask(SqlQuestion(Statement("-- a plan", {}), encoded))
        end(made)
        assert await made.ask(SqlQuestion(Statement("-- a plan", {}), encoded)) == sql
        with pytest.raises(InvalidQueryError, match="no column 'b'"):
            await made.ask(SqlQuestion(Statement("-- another", {}), plan(read("m", b="i64"), "b")))
    assert sql == 'SELECT q0."a" AS "found" FROM "m" AS q0'


async def test_statement_that_is_being_planned_is_planned_again(tmp_path: Path) -> None:
    async with planner(tmp_path) as made:
        end(made)
        assert isinstance(await decide(made, JOIN), Staged)


async def test_statement_that_ends_the_planner_is_refused(tmp_path: Path) -> None:
    async with planner(tmp_path) as made:
        with pytest.raises(OutOfMemoryQueryError, match="is allowed"):
            await decide(made, HUGE)
        with pytest.raises((OutOfMemoryQueryError, StatementRefusedError)):
            await decide(made, HUGE)
        with pytest.raises(StatementRefusedError, match="ended the engine twice: memory"):
            await decide(made, HUGE)
        # One that is silent on a busy machine is replaced, and may be ended later as well.
        assert "memory" in made.report().ends
        assert isinstance(await decide(made, JOIN), Staged)


async def test_task_runs_over_rows_that_are_sent_along(tmp_path: Path) -> None:
    async with planner(tmp_path) as made:
        decision = await decide(made, "SELECT g, count(*) AS n FROM facts GROUP BY g")
        assert isinstance(decision, Staged)
        graph = decision.graph
        while graph.root is None:
            graph = await made.advance(PLAN, {name: Measured(7, 100) for name in graph.stages})
        (reading,) = graph.root.readings
        rows = pa.table([[1, 1, 2], [10, 5, 1]], schema=reading.schema)
        task = Task(
            QueryId(new_query_id()), "root", "here", CatalogVersion(1),
            graph.root.work(0), graph.root.schema,
        )  # fmt: skip
        inputs = [TaskTable(reading.name, reading.schema, (rows, rows.slice(0, 1)))]
        stream = await made.run_task(task, inputs)
        found = [tuple(row.values()) async for batch in stream for row in batch.to_pylist()]
        assert sorted(found) == [(1, 25), (2, 1)]
