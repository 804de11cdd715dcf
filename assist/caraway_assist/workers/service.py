"""Keeps the workers of the manifest in force: runs each at the times of its cron."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime

from caraway_assist.workers.running import WorkerRuns
from caraway_assist.workers.times import Times, WallClock, WorkerTurns
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError
from caraway_core.manifest import Manifest
from caraway_core.manifest.values.workers import DeclaredWorker
from caraway_scheduler.coordination.schedule import Cron

logger = logging.getLogger(__name__)
_AGAIN = Delays(0.5, 10.0, jitter=0.2)


class WorkerService:
    """The workers of the manifest; `apply` follows it."""

    def __init__(self, runs: WorkerRuns, turns: WorkerTurns) -> None:
        self.declared: Sequence[DeclaredWorker] = ()
        self.runs = runs
        self.times: Times = WallClock()
        self._turns = turns
        self._tasks = Tasks()
        self._keepers: dict[str, _Keeper] = {}

    def apply(self, manifest: Manifest) -> None:
        """Follow a manifest. A worker that is gone or changed ends its run, and begins no other."""
        self.declared = manifest.workers
        wanted = {each.name: each for each in manifest.workers if each.cron is not None}
        for name, keeper in list(self._keepers.items()):
            if wanted.get(name) != keeper.worker:
                self._keepers.pop(name).retire()
        for name, worker in wanted.items():
            if name not in self._keepers:
                keeper = _Keeper(worker, self.runs, self._turns, self.times)
                self._keepers[name] = keeper
                keeper.keep(self._tasks)

    async def aclose(self) -> None:
        """End all workers, and break off their runs."""
        await self._tasks.aclose()


class _Keeper:
    """Runs one worker at its times."""

    def __init__(
        self, worker: DeclaredWorker, runs: WorkerRuns, turns: WorkerTurns, times: Times
    ) -> None:
        self.worker = worker
        self._cron = Cron(worker.cron or "")
        self._runs = runs
        self._turns = turns
        self._times = times
        self._task: asyncio.Task[None] | None = None
        self._is_retired = self._is_running = False

    def keep(self, tasks: Tasks) -> None:
        """Run the worker until it is retired."""
        self._task = tasks.keep(self._run, "worker", worker=self.worker.name)

    def retire(self) -> None:
        """Begin no other run; one that has begun may end."""
        self._is_retired = True
        if self._task is not None and not self._is_running:
            self._task.cancel()

    async def _run(self) -> None:
        # Times that passed while the worker ran, or while no scheduler did, are left out.
        while not self._is_retired:
            due = self._cron.next_after(self._times.now())
            await self._times.until(due)
            await self._tick(due)

    async def _tick(self, due: datetime) -> None:
        name, again = self.worker.name, Backoff(_AGAIN)
        while not self._runs.are_refused:
            try:
                async with self._turns.taken(name, due) as is_taken:
                    if is_taken:
                        await self._once(due)
                return
            except CarawayError as exc:
                logger.warning("worker waits for the state store",
                               extra={"worker": name, "cause": exc.message})  # fmt: skip
            if self._times.now() >= self._cron.next_after(due):
                return
            await asyncio.sleep(again.failed())

    async def _once(self, due: datetime) -> None:
        self._is_running = True
        try:
            await self._runs.run_worker(self.worker, due)
        except CarawayError as exc:
            logger.warning("worker failed",
                           extra={"worker": self.worker.name, "reason": exc.message})  # fmt: skip
        except Exception:
            logger.exception("worker failed", extra={"worker": self.worker.name})
        finally:
            self._is_running = False
