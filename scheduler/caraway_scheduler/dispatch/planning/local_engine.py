"""The interface of the scheduler's own engine."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import Statement
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_engine.routing import Planning


class LocalEngine(Planning, Protocol):
    """Plans statements, and runs those over tables that only the scheduler has.

    The engine may run in another process, so arguments are values and results are values or
    streams.
    """

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement over its catalog version, or the newest, and start it.

        Raises:
            CatalogMovedError: the statement's catalog version is gone.
            QueryError: the statement cannot be planned or started.
        """
        ...

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """Plan a statement as far as its question needs, and answer it.

        Raises:
            CatalogMovedError: the catalog version that the statement names is not available.
            QueryError: the statement cannot be planned, or what is asked cannot be answered.
        """
        ...

    async def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Run a task over tables in this process.

        Raises:
            CatalogMovedError: the task's catalog version is gone.
            QueryError: the task cannot be planned or started.
        """
        ...

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store a batch of rows that is small enough to be sent at once.

        Raises:
            ResultStoreError: the result store cannot be opened.
        """
        ...

    async def aclose(self) -> None:
        """Close the engine."""
        ...
