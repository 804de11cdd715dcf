"""The engine of the scheduler itself, as dispatch to a cluster sees it."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream, Statement, TableWrite
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_engine.routing import Planning


class LocalEngine(Planning, Protocol):
    """It plans, and runs what is known only here.

    It may be in another process: all arguments are values, and all answers values or streams.
    """

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement over the catalog that it names, or the newest, and start it.

        Raises:
            CatalogMovedError: the catalog that it names is not there.
            QueryError: it cannot be planned or started.
        """
        ...

    async def write_of(self, statement: Statement) -> TableWrite | None:
        """Plan a statement and return what it would change; None if it only reads.

        Raises:
            QueryError: it cannot be planned.
        """
        ...

    async def run(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Run a task over rows that are here.

        Raises:
            CatalogMovedError: the catalog that it was made for is not there.
            QueryError: it cannot be planned or started.
        """
        ...

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store rows that are here; few enough to be sent at once.

        Raises:
            ResultStoreError: the store cannot be opened.
        """
        ...

    async def aclose(self) -> None: ...
