"""The engine of the scheduler itself, as dispatch to a cluster sees it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, CatalogSnapshot, Executor
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder
from caraway_engine.sessions import Session


class LocalEngine(Executor, Protocol):
    """It plans, and answers what is known only here."""

    @property
    def session(self) -> Session | None: ...

    def prepare(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Register a snapshot, which statements see when it is published; blocks."""
        ...

    def publish(self) -> None: ...

    def release(self, pinned: Pinned | None) -> None:
        """Let go of the snapshots that no statement needs."""
        ...

    async def run(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream: ...

    async def stored(self, stream: BatchStream, order: StoreOrder) -> BatchStream: ...
