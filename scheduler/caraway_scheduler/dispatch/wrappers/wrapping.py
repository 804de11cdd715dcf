"""Bases for what wraps a dispatch or its streams and changes some of their methods."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from caraway_core.changes import Log
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import (
    BatchStream,
    Dispatch,
    ExecutorStatus,
    StageProgress,
    StatementProgress,
)
from caraway_core.statements import (
    ActiveStatement,
    CatalogSnapshot,
    ReadPoint,
    Statement,
    ViewFacts,
)
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_core.tables import StoredTable


class WrappedDispatch:
    """A dispatch that passes all calls to another one."""

    def __init__(self, inner: Dispatch) -> None:
        self._inner = inner

    @property
    def inner(self) -> Dispatch:
        """The wrapped dispatch."""
        return self._inner

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it."""
        return await self._inner.execute(query_id, statement)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`."""
        return await self._inner.ask(question)

    def reading(self) -> AbstractContextManager[ReadPoint]:
        """Keep the newest catalog and logs, so that several statements read the same rows."""
        return self._inner.reading()

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Install a catalog."""
        return await self._inner.install(snapshot)

    def views(self) -> Mapping[TableName, ViewFacts]:
        """Return the facts of all views."""
        return self._inner.views()

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load a version into memory."""
        return await self._inner.load(table, spec, log)

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Restore damaged chunks from memory."""
        return await self._inner.put_back(table, spec, log)

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Let statements read a version with this log."""
        self._inner.follow(spec, log)

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        """Return the progress of a query."""
        return self._inner.progress(query_id)

    def stages(self, query_id: QueryId) -> tuple[StageProgress, ...]:
        """Return the stages of a query."""
        return self._inner.stages(query_id)

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the running statements."""
        return self._inner.under_way()

    def executors(self) -> tuple[ExecutorStatus, ...]:
        """Return the status of every executor."""
        return self._inner.executors()

    async def aclose(self) -> None:
        """Close the wrapped dispatch."""
        await self._inner.aclose()
