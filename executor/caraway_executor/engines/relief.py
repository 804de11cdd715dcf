"""Engine processes next to the engine of an executor, for when its own threads take no work."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_executor.engines.crossing import CrossingTables
from caraway_executor.engines.engines import Engines
from caraway_executor.engines.forking import Forking
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.resources import ceilings

if TYPE_CHECKING:
    from caraway_engine.execution.settings import EngineSettings

_SHARE = 0.25
"""The share of the executor's memory limit that each of its other engine processes has."""
_RESTING_S = 120.0
"""Processes that were idle for this long end, to give back their memory."""
_FOLDER = "relief"


class Relief:
    """The other engine processes of an executor, over the catalog of one scheduler.

    None runs until there is a reason to expect work for them. Call it from one event loop.
    """

    def __init__(
        self,
        settings: "EngineSettings",
        clock: SecondsClock,
        forking: Callable[[], Forking],
    ) -> None:
        """Take what returns the fork server, which is the same for all schedulers."""
        limit, copies = settings.memory_limit_bytes, settings.chunks_directory
        share = None if limit is None else int(limit * _SHARE)
        settings = replace(
            settings,
            memory_limit_bytes=share,
            chunks_directory=None if copies is None else copies / _FOLDER,
        )
        # Writes to tables in memory are refused there: they belong to the executor.
        # What keeps the threads of the executor runs beside it, and must not come first.
        self._options = EngineOptions(settings, ceilings.of_engine(share), "apart", niceness=0)
        self._clock = clock
        self._forking = forking
        self._engines: Engines | None = None
        self._catalog: CatalogSnapshot | None = None
        self._installing = asyncio.Lock()
        self._used_s: float | None = None
        """When a process was last used; None if none has to end."""
        self._tasks = tasks.Tasks()

    def warm(self, catalog: CatalogSnapshot) -> None:
        """Start a process over a catalog, so that no work has to wait until it is there."""
        if self._engines is None:
            self._tasks.spawn(self._over(catalog), "start an engine process")

    def rest(self) -> None:
        """End processes that were idle for long."""
        engines, used_s = self._engines, self._used_s
        if engines is None or used_s is None or self._clock() - used_s < _RESTING_S:
            return
        if not any(each.works for each in engines.processes):
            engines.rest()
            self._used_s = None

    async def execute(
        self,
        catalog: CatalogSnapshot,
        query_id: QueryId,
        statement: Statement,
        *,
        is_suspect: bool,
    ) -> BatchStream:
        """Run a statement; see `Engines.execute`."""
        engines = await self._over(catalog)
        return await engines.execute(query_id, statement, is_suspect=is_suspect)

    async def run_task(
        self,
        catalog: CatalogSnapshot,
        task: Task,
        inputs: Sequence[TaskTable],
        *,
        is_suspect: bool,
    ) -> BatchStream:
        """Run a task; see `LocalExecutor.run_task`."""
        engines = await self._over(catalog)
        crossing = await asyncio.to_thread(CrossingTables.from_tables, inputs)
        return await engines.run_task(task, crossing, is_suspect=is_suspect)

    async def _over(self, catalog: CatalogSnapshot) -> Engines:
        """Return the processes, with the catalog that statements see at the moment."""
        self._used_s = self._clock()
        if self._engines is None:
            self._engines = Engines(self._options, self._options, shared=self._forking())
        engines = self._engines
        async with self._installing:
            if self._catalog is not catalog:
                await engines.install(catalog)
                self._catalog = catalog
        return engines

    def close(self) -> None:
        """End all processes."""
        self._tasks.cancel()
        engines, self._engines, self._catalog = self._engines, None, None
        if engines is not None:
            engines.close()
