"""Dispatch to the one executor that shares the scheduler's process."""

import asyncio
from collections.abc import Mapping

from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import (
    BatchStream,
    CatalogSnapshot,
    Executor,
    ExecutorState,
    ExecutorStatus,
    Statement,
)


class InProcessDispatch:
    """Everything goes to one executor; there is nothing to choose."""

    def __init__(self, executor: Executor, executor_id: ExecutorId) -> None:
        self._executor = executor
        self._executor_id = executor_id
        self._has_catalog = False

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        failed = await asyncio.to_thread(self._executor.install, snapshot)
        self._has_catalog = True
        return failed

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        return await self._executor.execute(query_id, statement)

    def executors(self) -> tuple[ExecutorStatus, ...]:
        state: ExecutorState = "ready" if self._has_catalog else "registered"
        return (ExecutorStatus(self._executor_id, state),)

    async def aclose(self) -> None:
        self._executor.close()
