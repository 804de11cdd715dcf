"""The planner client: plans are released however statements end."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, PlanLostError
from caraway_core.ids import ExecutorId, new_query_id
from caraway_core.protocols.fleet import Task
from caraway_core.statements import Statement
from caraway_core.tables import TableSpec
from caraway_engine.routing import Decision, PlanId, Question
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.tables import parquet

JOIN = "SELECT g, count(*) AS n FROM facts a JOIN more b ON a.k = b.k GROUP BY g ORDER BY g"
COUNTS = [{"g": g, "n": len(range(g, 90, 11))} for g in range(11)]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSpec]:
    facts = pa.table({"k": range(300), "v": range(300)})
    more = pa.table({"k": range(90), "g": [n % 11 for n in range(90)]})
    return {
        "facts": parquet(tmp_path / "facts", facts, 4),
        "more": parquet(tmp_path / "more", more, 3),
    }


async def all_are_forgotten(cluster: InProcessCluster) -> None:
    async def is_empty() -> bool:
        return not cluster.engine.plans_held

    await eventually(is_empty, "every planner is forgotten")


async def test_planners_are_forgotten_however_statements_end(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with in_process_cluster(tmp_path, tables) as cluster:
        assert (await cluster.execute(JOIN)).to_pylist() == COUNTS
        await all_are_forgotten(cluster)
        await cluster.explain(JOIN)
        await cluster.explain(f"ANALYZE {JOIN}")
        await all_are_forgotten(cluster)
        with pytest.raises(InvalidQueryError):
            await cluster.execute("SELECT nothing FROM facts")
        with pytest.raises(InvalidQueryError, match="division by zero"):
            await cluster.execute("SELECT max(1 / (v - v)) FROM facts")
        stream = await cluster.dispatch.execute(new_query_id(), Statement(JOIN, {}))
        await all_are_forgotten(cluster)
        await stream.aclose()


async def test_a_statement_that_is_cancelled_in_its_stages_is_forgotten(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with in_process_cluster(tmp_path, tables) as cluster:
        is_begun = asyncio.Event()

        async def hang(_executor_id: ExecutorId, _task: Task) -> None:
            is_begun.set()
            await asyncio.Event().wait()

        cluster.fleet.before = hang
        asking = asyncio.ensure_future(cluster.execute(JOIN))
        await asyncio.wait_for(is_begun.wait(), 60)
        assert cluster.engine.plans_held == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await all_are_forgotten(cluster)


async def test_a_statement_whose_planner_is_lost_is_planned_again(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with in_process_cluster(tmp_path, tables) as cluster:
        plans: list[PlanId] = []
        decide = cluster.engine.decide

        async def noted(question: Question) -> Decision:
            plans.append(question.plan)
            return await decide(question)

        async def lose(_executor_id: ExecutorId, _task: Task) -> None:
            if len(plans) == 1:
                await cluster.engine.forget(plans[0])

        cluster.engine.decide = noted  # type: ignore[method-assign]
        cluster.fleet.before = lose
        assert (await cluster.execute(JOIN)).to_pylist() == COUNTS
        assert len(plans) == 2


async def test_a_statement_whose_planner_is_lost_every_time_fails_with_the_cause(
    tmp_path: Path, tables: dict[str, TableSpec]
) -> None:
    async with in_process_cluster(tmp_path, tables) as cluster:
        plans: list[PlanId] = []
        decide = cluster.engine.decide

        async def noted(question: Question) -> Decision:
            plans.append(question.plan)
            return await decide(question)

        async def lose(_executor_id: ExecutorId, _task: Task) -> None:
            await cluster.engine.forget(plans[-1])

        cluster.engine.decide = noted  # type: ignore[method-assign]
        cluster.fleet.before = lose
        with pytest.raises(PlanLostError, match="run the statement again"):
            await cluster.execute(JOIN)
        assert len(plans) == 3
