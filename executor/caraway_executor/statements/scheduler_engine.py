"""The engine of a scheduler: plans for executors, and runs what only the scheduler knows."""

import asyncio
from collections.abc import Mapping, Sequence

import pyarrow as pa

from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_engine.routing import Decision, Described, PlanId, Prepared, Question
from caraway_engine.routing.router import Router
from caraway_engine.stages import Measured, StageGraph
from caraway_executor.statements.local import LocalExecutor


class SchedulerEngine:
    """Answers a scheduler with values and streams. No session leaves it."""

    def __init__(self, local: LocalExecutor) -> None:
        """Take the executor that keeps the catalogs and whose threads plan."""
        self._local = local
        self._router = Router(local.over, local.in_planning_thread)

    @property
    def local(self) -> LocalExecutor:
        """The executor that runs statements in this process."""
        return self._local

    @property
    def plans_held(self) -> int:
        """The number of planners that are kept for running statements."""
        return len(self._router)

    async def prepare(self, snapshot: CatalogSnapshot) -> Prepared:
        """See `Planning.prepare`."""
        failed = await asyncio.to_thread(self._local.prepare, snapshot)
        return Prepared(failed, self._local.prepared_views)

    async def publish(self) -> None:
        """See `Planning.publish`."""
        self._local.publish()

    async def release(self, pinned: Pinned) -> None:
        """See `Planning.release`."""
        self._local.release(pinned)

    async def decide(self, question: Question) -> Decision:
        """See `Planning.decide`."""
        return await self._router.decide(question)

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """See `Planning.advance`."""
        return await self._router.advance(plan, measured)

    async def describe(self, plan: PlanId) -> Described:
        """See `Planning.describe`."""
        return await self._router.describe(plan)

    async def forget(self, plan: PlanId) -> None:
        """See `Planning.forget`."""
        self._router.forget(plan)

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement here; see `Executor.execute`."""
        return await self._local.execute(query_id, statement)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Executor.ask`."""
        return await self._local.ask(question)

    async def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Run a task here; see `LocalExecutor.run_task`."""
        return await self._local.run_task(task, inputs)

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store rows that already exist; see `LocalExecutor.stored`."""
        return await self._local.stored(rows, order)

    async def aclose(self) -> None:
        """Cancel running work."""
        self._local.close()
