"""A fleet that injects actions at chosen moments."""

from collections.abc import Awaitable, Callable, Sequence

from caraway_core.changes import Log
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Input, Task, TaskOutcome
from caraway_core.tables import StoredTable
from caraway_engine.execution.settings import EngineSettings
from tests.kit.in_process_fleet import InProcessFleet

Happening = Callable[[ExecutorId, Task], Awaitable[None]]


async def nothing(_executor_id: ExecutorId, _task: Task) -> None:
    return


class HauntedFleet(InProcessFleet):
    """Calls `before` before a task is sent to its executor, and `after` when it is done.

    `loads` lists the executors that loaded something, in order.
    """

    before: Happening = staticmethod(nothing)
    after: Happening = staticmethod(nothing)

    def __init__(self, executor_ids: Sequence[ExecutorId], settings: EngineSettings) -> None:
        super().__init__(executor_ids, settings)
        self.loads: list[ExecutorId] = []

    def kept(self, executor_id: ExecutorId, origin: str = "here") -> tuple[CatalogVersion, ...]:
        """Return the versions of a catalog that an executor holds."""
        worker = self._lives[executor_id].worker
        return tuple(worker._catalogs.executor(origin).kept)

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        await self.before(executor_id, task)
        outcome = await super().run_task(executor_id, task, inputs)
        await self.after(executor_id, task)
        return outcome

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        await self.before(executor_id, task)
        return await super().stream(executor_id, task, inputs)

    async def load(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        chunks: Sequence[str],
        log: Log = (),
    ) -> int:
        rows = await super().load(executor_id, origin, table, spec, chunks, log)
        self.loads.append(executor_id)
        return rows
