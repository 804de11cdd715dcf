"""Statements that run again take the stage graphs of their earlier runs."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.ids import CatalogVersion, ExecutorId
from caraway_core.statements import Statement
from caraway_engine.routing import PlanId, Question, Staged, Workers
from caraway_engine.routing.router import Router
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages import Measured, Policy, StageGraph
from caraway_engine.stages.planner import Planner
from tests.kit.engine import session
from tests.kit.tables import parquet

EAGER = Policy(small_table_bytes=0, broadcast_bytes=10_000, gather_bytes=0, partition_bytes=1 << 20)
WORKERS = Workers((ExecutorId("e1"), ExecutorId("e2")), 1 << 30, EAGER)
JOIN = "SELECT g, count(*) AS n FROM facts a JOIN more b ON a.k = b.k GROUP BY g"
SMALL, LARGE = 1000, 100_000


class _Runs:
    """Runs of statements that are planned by one router, and how often a planner planned."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.router = Router(self._over, asyncio.to_thread)
        self.count = 0

    async def _over(self, _version: CatalogVersion) -> Session:
        return self.session

    def _decided(self, sql: str, workers: Workers) -> Coroutine[Any, Any, Any]:
        self.count += 1
        statement = Statement(sql, {}, catalog_version=CatalogVersion(1))
        return self.router.decide(Question(PlanId(str(self.count)), statement, workers))

    async def run(
        self, *sizes: int, sql: str = JOIN, workers: Workers = WORKERS
    ) -> list[StageGraph]:
        """Plan a run whose waves have these sizes; the last one is that of all further waves."""
        staged = await self._decided(sql, workers)
        assert isinstance(staged, Staged)
        graphs, measured = [staged.graph], dict[str, Measured]()
        while graphs[-1].root is None:
            size = sizes[min(len(graphs), len(sizes)) - 1]
            for name in graphs[-1].stages:
                measured.setdefault(name, Measured(10, size))
            graphs.append(await self.router.advance(PlanId(str(self.count)), dict(measured)))
        return graphs


@pytest.fixture
def over(tmp_path: Path) -> Session:
    facts = pa.table({"k": range(300), "v": range(300)})
    more = pa.table({"k": range(90), "g": [n % 11 for n in range(90)]})
    return session(
        {
            "facts": parquet(tmp_path / "facts", facts, 4),
            "more": parquet(tmp_path / "more", more, 3),
        }
    )


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    """The stages that were finished whenever a planner planned."""
    calls: list[frozenset[str]] = []
    advance = Planner.advance

    def counted(self: Planner, finished: Any) -> StageGraph:
        calls.append(frozenset(finished))
        return advance(self, finished)

    monkeypatch.setattr(Planner, "advance", counted)
    return calls


async def test_a_run_of_the_same_sizes_is_not_planned_again(
    over: Session, planned: list[frozenset[str]]
) -> None:
    runs = _Runs(over)
    first = await runs.run(SMALL)
    assert planned
    planned.clear()
    assert await runs.run(SMALL) == first
    assert not planned


@pytest.mark.parametrize("sizes", [(LARGE,), (SMALL, LARGE), (LARGE, SMALL)])
async def test_a_run_of_other_sizes_is_planned_as_if_it_were_the_first(
    over: Session, sizes: tuple[int, ...]
) -> None:
    runs = _Runs(over)
    await runs.run(SMALL)
    assert await runs.run(*sizes) == await _Runs(over).run(*sizes)


async def test_what_was_planned_for_other_executors_is_not_used(
    over: Session,
) -> None:
    runs = _Runs(over)
    two = await runs.run(LARGE)
    four = Workers(tuple(map(ExecutorId, "abcd")), 1 << 30, EAGER)
    assert await runs.run(LARGE, workers=four) != two
    assert await runs.run(LARGE) == two


async def test_a_run_can_be_described_though_it_was_not_planned(
    over: Session,
) -> None:
    runs = _Runs(over)
    await runs.run(SMALL)
    graphs = await runs.run(SMALL)
    described = await runs.router.describe(PlanId(str(runs.count)))
    assert described.graph == graphs[-1]
    assert described.fragments.keys() == {*graphs[-1].stages, "answer"}
