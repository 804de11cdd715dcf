"""Statements in stages on executors: their progress, their slots, and what their end leaves."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutorLostError, ExecutorsLostError, OverloadedError, QueryError
from caraway_core.ids import CatalogVersion, ExecutorId, PrincipalId, QueryId
from caraway_core.protocols.dispatch import StatementProgress
from caraway_core.protocols.fleet import ExchangePart, Input, Task, TaskOutcome
from caraway_core.protocols.offers import FlightPlace, Offer, OfferOrder, OfferOutcome
from caraway_core.statements import Statement
from caraway_engine.routing import PlanId, Staged
from caraway_engine.stages import Measured, StageGraph
from caraway_scheduler.dispatch.planning.asking import RunDecision
from caraway_scheduler.dispatch.stages.offering import OfferedStream
from caraway_scheduler.dispatch.stages.staging import Running, StagedRunner
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies
from tests.kit.driving import SCHEMA, graph, stage, turns
from tests.kit.stream_double import StreamDouble

E1, E2 = ExecutorId("e1"), ExecutorId("e2")
QUERY = QueryId("q")
SCAN = stage("scan", count=2)
ROOT = replace(stage("root", "scan", count=2), layout="partitions")


class Rows(StreamDouble):
    """One batch of a task of the last stage."""

    schema = SCHEMA
    reads_only_catalog = True
    written = None

    def __init__(self, number: int) -> None:
        self._left = [pa.record_batch([[number]], schema=SCHEMA)]
        self.is_closed = False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()

    async def aclose(self) -> None:
        self.is_closed = True


class Site:
    """A fleet, its members and the planner, all as the test says."""

    def __init__(self, *executors: ExecutorId) -> None:
        self.executors = list(executors or (E1, E2))
        self.flight: FlightPlace | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: dict[str, Exception] = {}
        """What tasks of a stage raise."""
        self.called: list[tuple[str, ExecutorId]] = []
        self.cancelled: list[str] = []
        self.streams: list[Rows] = []
        self.offers: list[Offer] = []
        self.withdrawn: list[str] = []
        self.ran: list[FinishedTask] = []
        self.measured: list[Mapping[str, Measured]] = []
        any_self: Any = self
        reports = WorkReports(
            DispatchTallies(), self.ran.append, lambda _executor, _cause: None, self._on_loss
        )
        self.runner = StagedRunner(any_self, any_self, any_self, "here", reports, any_self)

    async def begin(self, statement: Statement | None = None) -> Running:
        known = Staged(frozenset(), SCHEMA, True, graph(None, SCAN), {})
        decision = RunDecision(known, tuple(self.executors), PlanId("plan"))
        asked = statement or Statement("SELECT n FROM t", {})
        return await self.runner.run_stages(QUERY, asked, CatalogVersion(1), decision, known)

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        self.measured.append(measured)
        return graph(ROOT, SCAN)

    def ready(self) -> Sequence[Any]:
        return [SimpleNamespace(executor_id=each, flight=self.flight) for each in self.executors]

    def is_draining(self, _executor_id: ExecutorId) -> bool:
        return False

    async def wait_ready(self, _count: int, _timeout_s: float) -> bool:
        return False

    async def run_task(
        self, executor_id: ExecutorId, task: Task, _inputs: Sequence[Input]
    ) -> TaskOutcome:
        await self._call(executor_id, task)
        return TaskOutcome((ExchangePart(None, executor_id, 3, 2**30),), 1.0)

    async def stream(self, executor_id: ExecutorId, task: Task, _inputs: Sequence[Input]) -> Rows:
        await self._call(executor_id, task)
        self.streams.append(Rows(len(self.streams)))
        return self.streams[-1]

    async def offer(
        self, executor_id: ExecutorId, task: Task, _inputs: Sequence[Input], offer: Offer
    ) -> None:
        await self._call(executor_id, task)
        self.offers.append(offer)

    async def attend(self, _executor_id: ExecutorId, _offer_id: str) -> OfferOutcome:
        await self.gate.wait()
        return OfferOutcome(3, 30)

    async def withdraw(self, _executor_id: ExecutorId, offer_id: str, _reason: object) -> None:
        self.withdrawn.append(offer_id)

    async def _call(self, executor_id: ExecutorId, task: Task) -> None:
        self.called.append((task.stage, executor_id))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(task.stage)
            raise
        if task.stage in self.failures:
            raise self.failures[task.stage]

    async def _on_loss(self, _query_id: QueryId, _executor_id: ExecutorId) -> None:
        """Suspect no statement."""

    @property
    def is_idle(self) -> bool:
        """True if the runner knows of no query."""
        return self.runner.progress(QUERY) is None and self.runner.stages(QUERY) == ()


async def read(stream: Any) -> list[int]:
    return sorted([n async for batch in stream for n in batch["n"].to_pylist()])


def offering() -> Statement:
    return Statement("SELECT n FROM t", {}, offer=OfferOrder(PrincipalId("p"), "", 5.0))


async def test_a_query_is_known_from_its_plan_to_the_end_of_its_answer() -> None:
    site = Site()
    assert site.is_idle
    site.gate.clear()
    beginning = asyncio.create_task(site.begin())
    await turns()
    assert site.runner.progress(QUERY) == StatementProgress(0, 2, 0, 3)
    assert [each.name for each in site.runner.stages(QUERY)] == ["scan"]
    site.gate.set()
    running = await beginning
    assert site.runner.progress(QUERY) == StatementProgress(1, 2, 2, 4)
    assert site.measured == [{"scan": Measured(6, 2**31)}]
    stream = running.stream
    assert await read(stream) == [0, 1]
    assert site.is_idle


async def test_tasks_go_to_the_executors_of_the_decision_in_turn() -> None:
    site = Site()
    await (await site.begin()).stream.aclose()
    assert sorted(site.called) == [("root", E1), ("root", E2), ("scan", E1), ("scan", E2)]


async def test_the_end_is_reported_with_the_rows_that_were_read() -> None:
    site = Site()
    stream = (await site.begin()).stream
    assert await read(stream) == [0, 1]
    answered = site.ran[-1]
    assert [each.stage for each in site.ran] == ["scan", "scan", "root"]
    assert (answered.query_id, answered.executor_id, answered.rows) == (QUERY, E1, 2)


async def test_an_answer_that_is_closed_early_leaves_nothing() -> None:
    site = Site()
    stream = (await site.begin()).stream
    await anext(aiter(stream))
    await stream.aclose()
    assert site.is_idle and all(each.is_closed for each in site.streams)
    await stream.aclose()
    assert [each.stage for each in site.ran].count("root") == 1, "its end is reported once"


@pytest.mark.parametrize("where", ["scan", "root"])
async def test_a_failure_of_a_task_leaves_nothing(where: str) -> None:
    site = Site()
    site.failures[where] = QueryError("division by zero")
    with pytest.raises(QueryError, match="division by zero"):
        await site.begin()
    assert site.is_idle


async def test_a_query_that_is_cancelled_stops_its_tasks() -> None:
    site = Site()
    site.gate.clear()
    beginning = asyncio.create_task(site.begin())
    await turns()
    beginning.cancel()
    await asyncio.wait((beginning,))
    await turns()
    assert beginning.cancelled() and site.cancelled == ["scan", "scan"] and site.is_idle


async def test_a_task_that_is_lost_again_and_again_ends_the_query() -> None:
    site = Site()
    site.failures["scan"] = ExecutorLostError(E1, "it is gone")
    with pytest.raises((ExecutorsLostError, OverloadedError)):
        await site.begin()
    assert site.is_idle


async def test_executors_offer_the_parts_of_an_answer_that_clients_read() -> None:
    site = Site()
    site.flight = FlightPlace("grpc://here")
    running = await site.begin(offering())
    stream = running.stream
    assert isinstance(stream, OfferedStream) and not site.streams
    assert [each.location for each in stream.offered] == ["grpc://here"] * 2
    assert [each.wait_s for each in site.offers] == [5.0, 5.0]
    assert [batch async for batch in stream] == [] and stream.passed == (6, 60)
    assert site.is_idle


async def test_an_answer_is_not_offered_where_an_executor_serves_no_clients() -> None:
    site = Site()
    stream = (await site.begin(offering())).stream
    assert not site.offers
    assert await read(stream) == [0, 1]
