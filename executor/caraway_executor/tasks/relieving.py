"""The engine processes that relieve an executor, for the catalogs of all its schedulers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import TableName
from caraway_core.pieces import StoredPiece
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines.forking import Forking
from caraway_executor.engines.relief import Relief
from caraway_executor.resources.starving import OwnThreads
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.tasks.catalogs import Catalogs
from caraway_executor.tasks.places import Places
from caraway_executor.tasks.relieved import RelievedExecutor, may_task_leave


class Relieving:
    """Gives each catalog of an executor its own engine processes, once the executor is busy.

    Call it from one event loop.
    """

    def __init__(
        self,
        settings: EngineSettings,
        catalogs: Catalogs,
        places: Places,
        clock: SecondsClock,
        *,
        has_processes: bool,
    ) -> None:
        """Take the slots for tasks; without other processes, all work waits for its turn."""
        self._settings = settings
        self._catalogs = catalogs
        self._clock = clock
        self._has_processes = has_processes
        self._places = places
        self._written: set[TableName] = set()
        self._reliefs: dict[str, tuple[LocalExecutor, Relief]] = {}
        self._forking: Forking | None = None
        self._threads: OwnThreads | None = None
        if has_processes:
            self._threads = OwnThreads(self)

    def executor(self, origin: str) -> RelievedExecutor | LocalExecutor:
        """Return the executor for the catalog of an origin; see `Catalogs.executor`."""
        local = self._catalogs.executor(origin)
        if self._threads is None:
            return local
        executor, relief = self._reliefs.get(origin, (None, None))
        if relief is None or executor is not local:
            if relief is not None:
                relief.close()
            relief = Relief(self._settings, self._clock, self._shared_forking)
            self._reliefs[origin] = local, relief
        return RelievedExecutor(local, relief, self._threads, self._written)

    def may_leave(self, task: Task, inputs: Sequence[TaskTable]) -> bool:
        """Return whether a task may run elsewhere because it has no slot.

        Accelerated rows would have to be loaded there, which may take longer than to wait.
        """
        pieces = chain.from_iterable(share.pieces for share in task.shares)
        is_stored = any(isinstance(each, StoredPiece) for each in pieces)
        return self._threads is not None and not is_stored and may_task_leave(task, inputs)

    async def run_task(
        self, task: Task, inputs: Sequence[TaskTable], *, is_here: bool
    ) -> BatchStream:
        """Run a task, in another process if it has no slot here."""
        executor = self.executor(task.catalog)
        if isinstance(executor, LocalExecutor):
            return await executor.run_task(task, inputs)
        return await executor.run_task(task, inputs, is_here=is_here)

    def tend(self) -> None:
        """End processes that were of no use for long, or whose scheduler is gone.

        With the first catalog, the fork server is started: once the threads take no work, that
        would take seconds.
        """
        if self._has_processes and self._catalogs.versions:
            with suppress(OSError):
                self._shared_forking()
        for origin, (_, relief) in list(self._reliefs.items()):
            relief.rest()
            if origin not in self._catalogs.versions:
                relief.close()
                del self._reliefs[origin]

    def close(self) -> None:
        """End all processes."""
        if self._threads is not None:
            self._threads.close()
        for _, relief in self._reliefs.values():
            relief.close()
        if self._forking is not None:
            self._forking.close()

    def _shared_forking(self) -> Forking:
        if self._forking is None:
            self._forking = Forking(lambda _process: None)
        return self._forking

    async def probe(self) -> None:
        """Do work in the threads that takes no time."""
        executors = self._catalogs.executors.values()
        await asyncio.gather(*(each.probe() for each in executors))

    def note_starved(self, *, are_starved: bool) -> None:
        """Lend the slots of tasks while the threads take no other work."""
        self._places.lend(are_lent=are_starved)

    def note_busy(self) -> None:
        """Expect that work that takes long is in the way of other work."""
        for local, relief in self._reliefs.values():
            if local.session is not None:
                relief.warm(local.session.snapshot)
