"""The engine of a scheduler in separate processes: this process evaluates no statement."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.errors import PlanLostError
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.engines import EngineReport
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.routing import Decision, Described, PlanId, Prepared, Question
from caraway_engine.stages import Measured, StageGraph
from caraway_executor.engines.causes import EngineLostError, NotBegunError
from caraway_executor.engines.crossing import CrossingTables
from caraway_executor.engines.engines import Engines
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.starting import ForkServer
from caraway_executor.resources import ceilings

_MOST_PLANS = 10_000


class IsolatedPlanner:
    """Plans for executors, and runs what only the scheduler knows, in engine processes."""

    def __init__(self, settings: EngineSettings, server: ForkServer | None = None) -> None:
        ceiling = ceilings.of_engine(settings.memory_limit_bytes)
        options = EngineOptions(settings, ceiling, "main", "scheduler")
        self._engines = Engines(options, replace(options, role="apart"), server)
        self._plans: OrderedDict[PlanId, EngineProcess] = OrderedDict()
        """The process of the planner of each running statement."""

    def report(self) -> EngineReport:
        """Return the state of the engine processes."""
        return self._engines.report()

    async def prepare(self, snapshot: CatalogSnapshot) -> Prepared:
        """See `Planning.prepare`."""
        failed, views = await self._engines.prepare(snapshot)
        return Prepared(failed, views)

    async def publish(self) -> None:
        """See `Planning.publish`."""
        await self._engines.publish()

    async def release(self, pinned: Pinned) -> None:
        """See `Planning.release`."""
        await self._engines.tell("release", pinned)

    async def decide(self, question: Question) -> Decision:
        """See `Planning.decide`."""
        decision: Decision
        decision, process = await self._engines.ask(question.statement, "decide", question)
        self._plans[question.plan] = process
        if len(self._plans) > _MOST_PLANS:
            self._plans.popitem(last=False)
        return decision

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """See `Planning.advance`."""
        graph: StageGraph = await self._with(plan, "advance", measured)
        return graph

    async def describe(self, plan: PlanId) -> Described:
        """See `Planning.describe`."""
        described: Described = await self._with(plan, "describe")
        return described

    async def forget(self, plan: PlanId) -> None:
        """See `Planning.forget`."""
        process = self._plans.pop(plan, None)
        if process is not None and process.is_alive:
            # A process that ended, or is no longer used, has forgotten it.
            with suppress(EngineLostError, NotBegunError):
                await process.call("forget", plan)

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement; see `Executor.execute`."""
        return await self._engines.execute(query_id, statement)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Executor.ask`."""
        answer: Answer
        answer, _ = await self._engines.ask(question.statement, "ask", question)
        return answer

    async def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Run a task over rows in this process; see `LocalExecutor.run_task`."""
        return await self._engines.run_task(task, CrossingTables.from_tables(inputs))

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store rows in this process; see `LocalExecutor.stored`."""
        return await self._engines.open("stored", rows, order)

    async def aclose(self) -> None:
        """End the engine processes."""
        self._engines.close()

    async def _with(self, plan: PlanId, method: str, *arguments: object) -> Any:
        """Call a method of the planner of a statement.

        Raises:
            PlanLostError: its process ended; the statement must be planned again.
        """
        process = self._plans.get(plan)
        if process is None:
            raise PlanLostError("the planner of the statement is lost")
        try:
            return await process.call(method, plan, *arguments)
        except (EngineLostError, NotBegunError) as exc:
            raise PlanLostError("the planner of the statement is lost") from exc
