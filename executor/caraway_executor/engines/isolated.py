"""The executor of a standalone runtime: runs statements in engine processes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from caraway_core.changes import Log
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.engines import EngineReport
from caraway_core.statements import CatalogSnapshot, Statement, ViewFacts
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_core.tables import StoredTable
from caraway_executor.engines.engines import Engines
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.starting import ForkServer
from caraway_executor.resources import ceilings

if TYPE_CHECKING:
    from caraway_engine.execution.settings import EngineSettings

_APART = 0.5


class IsolatedExecutor:
    """Runs statements in other processes; this process evaluates no part of them."""

    def __init__(self, settings: "EngineSettings", server: ForkServer | None = None) -> None:
        """Start the fork server, unless one is given."""
        limit = settings.memory_limit_bytes
        half = None if limit is None else int(limit * _APART)
        apart = replace(settings, memory_limit_bytes=half)
        self._engines = Engines(
            EngineOptions(settings, ceilings.of_engine(limit), "main"),
            EngineOptions(apart, ceilings.of_engine(half), "apart"),
            server,
        )
        self._holds: tuple[TableName, ...] = ()
        self._loop = asyncio.get_running_loop()

    @property
    def memory_used_bytes(self) -> int:
        """The memory of all engine processes."""
        return sum(each.memory_bytes for each in self.report().processes)

    def report(self) -> EngineReport:
        """Return the state of the engine processes."""
        return self._engines.report()

    def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Install a catalog; return why tables could not be built. Blocks; for other threads."""
        installing = self._engines.install(snapshot)
        return asyncio.run_coroutine_threadsafe(installing, self._loop).result()

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of all views in the catalog that new statements see."""
        return self._engines.views

    @property
    def holds(self) -> tuple[TableName, ...]:
        """The accelerated datasets that have rows in memory."""
        return self._holds

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement; see `Engines.execute`."""
        return await self._engines.execute(query_id, statement)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Executor.ask`."""
        answer: Answer
        answer, _ = await self._engines.ask(question.statement, "ask", question)
        return answer

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load a version of a dataset; see `LocalExecutor.load`."""
        rows: int
        rows, self._holds = await self._engines.call("load", table, spec, log)
        return rows

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Rewrite damaged chunks of a version; see `LocalExecutor.put_back`."""
        count: int = await self._engines.call("put_back", table, spec, log)
        return count

    def close(self) -> None:
        """End all engine processes."""
        self._engines.close()
