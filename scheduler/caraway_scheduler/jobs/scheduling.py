"""Schedules the jobs of this process, and takes over jobs of lost owners."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from caraway_core.concurrency import tasks as background
from caraway_core.errors import CarawayError
from caraway_core.ids import JobId, QueryId
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import Job, JobProgress, StoredJob
from caraway_scheduler.jobs.owners import DisplacedError, Owners
from caraway_scheduler.jobs.queue import FairQueue
from caraway_scheduler.jobs.runner import JobRun, JobRunner, now
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.jobs.tallies import JobTallies
from caraway_serving import spans
from caraway_serving.spans import Span

logger = logging.getLogger(__name__)
_ROUND_LIMIT_S = 10.0
Ended = Callable[[JobRun, Job], None]


class JobScheduler:
    """Runs the jobs of this process, and takes over jobs whose owner is gone.

    `places` returns how many jobs may run at once and is called before each start. `on_end` is
    called with every job that ended here.
    """

    def __init__(
        self,
        runner: JobRunner,
        queue: FairQueue,
        owners: Owners,
        shared: SharedJobs,
        tallies: JobTallies,
        places: Callable[[], int],
        on_end: Ended,
    ) -> None:
        self._runner = runner
        self._queue = queue
        self._owners = owners
        self._records = shared.records
        self._replica = shared.replica
        self._committer = shared.committer
        self._tallies = tallies
        self._places = places
        self._on_end = on_end
        self._kept_s = shared.kept_s
        self._waiting: dict[JobId, tuple[StoredJob, Span]] = {}
        self._running: dict[JobId, tuple[JobRun, asyncio.Task[None]]] = {}
        self._tasks = background.Tasks()
        self._news = asyncio.Event()
        self._may_begin = False
        self._is_stopping = False
        self._trouble = ""
        self._published: dict[JobId, JobProgress] = {}
        shared.replica.subscribe(self._on_change)

    @property
    def owner(self) -> str:
        """The owner name of this process in job records."""
        return str(self._owners.own)

    @property
    def queued(self) -> int:
        """The number of jobs that wait here."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """The number of jobs that run here."""
        return len(self._running)

    def begin_jobs(self) -> None:
        """Allow jobs to run, once the catalog is loaded."""
        self._may_begin = True
        self._news.set()

    def check_room(self, job: Job) -> None:
        """Check that a client's job fits into the queue.

        Raises:
            OverloadedError: it does not.
        """
        self._queue.check(job.principal)

    def add(self, held: StoredJob, span: Span | None = None) -> None:
        """Queue a job that this process owns, unless it is queued, running or over."""
        job_id = held.job.job_id
        if job_id in self._waiting or job_id in self._running or held.job.is_over:
            return
        self._waiting[job_id] = held, span or spans.start(None)
        self._queue.add(held.job.principal, job_id, always=True)
        self._news.set()

    def progress(self, job_id: JobId) -> JobProgress | None:
        """Return the progress of a job of this process; None for jobs of other processes."""
        found = self._running.get(job_id)
        cause = self._committer.waits_for(job_id) or self._trouble
        if found is None:
            return JobProgress(waits_for=cause) if cause else None
        progress = found[0].current_progress()
        return replace(progress, waits_for=cause) if cause else progress

    def statement_of(self, job_id: JobId) -> QueryId | None:
        """Return the statement that runs a job in this process, or None."""
        found = self._running.get(job_id)
        return found[0].query_id if found is not None else None

    async def run_jobs(self) -> None:
        """Run and take over jobs until cancelled.

        Raises:
            DisplacedError: another process works under the same id.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatching())
            tasks.create_task(self._watching())

    async def stop(self, timeout_s: float) -> None:
        """Start no more jobs, wait for running ones, then release the rest to other schedulers."""
        self._is_stopping = True
        running = [task for _, task in self._running.values()]
        if running:
            await asyncio.wait(running, timeout=timeout_s)
        left = list(self._running.values())
        for _, task in left:
            task.cancel()
        if left:
            await asyncio.wait([task for _, task in left], timeout=timeout_s)
        runs = [run for run, _ in left if not run.job.writes]
        begun = [run.held for run in runs if run.is_counted]
        waiting = [run.held for run in runs if not run.is_counted]
        waiting += [each for each, _ in self._waiting.values()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s or 1.0):
                await self._release(begun, has_begun=True)
                await self._release(waiting, has_begun=False)
        await self._owners.withdraw()

    async def _release(self, jobs: Iterable[StoredJob], *, has_begun: bool) -> None:
        for each in jobs:
            if each.job.is_over:
                continue
            try:
                released = states.released(each.job, gives_back=has_begun)
                await self._committer.attempt(each, released)
            except CarawayError:
                return  # Others take over once this entry expires.

    async def _dispatching(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._may_run_another() and (job_id := self._queue.next()) is not None:
                stored_job, span = self._waiting.pop(job_id)
                run = self._runner.prepare(stored_job, span)
                task = self._tasks.spawn(self._work(run), "run a job", job_id=job_id)
                self._running[job_id] = run, task
                self._queue.started(stored_job.job.principal)

    def _may_run_another(self) -> bool:
        ready = self._may_begin and not self._is_stopping
        return ready and len(self._running) < self._places()

    async def _work(self, run: JobRun) -> None:
        job = run.job
        waited_s = (now() - job.created_at).total_seconds()
        if job.attempts == 0:
            self._tallies.waits.add((), max(0.0, waited_s) * 1000)
        ended: Job | None = None
        try:
            ended = await self._runner.run_job(run)
        except Exception:
            logger.exception("job was not finished", extra={"job_id": job.job_id})
        finally:
            del self._running[job.job_id]
            self._published.pop(job.job_id, None)
            self._queue.finished(job.principal)
            self._news.set()
        if ended is not None and ended.is_over:
            self._tallies.finished[(ended.status,)] += 1
            self._tallies.durations.add((), (time.monotonic() - run.began_at) * 1000)
            self._on_end(run, ended)

    def _on_change(self, stored_job: StoredJob) -> None:
        """React to a job that another process ended or took while it runs or waits here."""
        job = stored_job.job
        is_ours = not job.is_over and job.owner == self.owner
        running = self._running.get(job.job_id)
        if running is not None:
            run, task = running
            if stored_job.revision > run.held.revision and not is_ours and not run.is_settling:
                logger.info(
                    "job was ended or taken elsewhere",
                    extra={"job_id": job.job_id, "status": job.status},
                )
                task.cancel()
        elif job.job_id in self._waiting and not is_ours:
            del self._waiting[job.job_id]
            self._queue.remove(job.job_id)
            self._news.set()

    async def _watching(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_ROUND_LIMIT_S):
                    await self._round()
                self._trouble = ""
            except DisplacedError:
                raise
            except (CarawayError, TimeoutError) as exc:
                cause = str(exc) or "the state store responds too slowly"
                if not self._trouble:
                    logger.warning("job ownership cannot be renewed", extra={"cause": cause})
                self._trouble = cause
            await asyncio.sleep(self._owners.round_s)
            self._news.set()  # The cluster may have gained capacity.

    async def _round(self) -> None:
        await self._owners.renew()
        await self._owners.look()
        await self._publish_progress()
        if not self._replica.is_current or self._is_stopping:
            return
        under_way = self._replica.under_way()
        # Queue own jobs before the first await: one that ends meanwhile would look unowned.
        for stored_job in under_way:
            if stored_job.job.owner == self.owner:
                self.add(stored_job)
        for stored_job in under_way:
            if stored_job.job.owner != self.owner and self._owners.is_gone(stored_job.job.owner):
                await self._take(stored_job)

    async def _take(self, stored_job: StoredJob) -> None:
        taken = states.claimed(stored_job.job, self.owner, now())
        ttl_s = self._kept_s if taken.is_over else None
        mine = await self._committer.attempt(stored_job, taken, ttl_s)
        if mine is None:
            return
        logger.info(
            "job taken over",
            extra={"job_id": taken.job_id, "from": stored_job.job.owner, "epoch": taken.epoch},
        )
        self._tallies.taken_over += 1
        if taken.is_over:
            self._tallies.finished[(taken.status,)] += 1
        else:
            self.add(mine)

    async def _publish_progress(self) -> None:
        """Publish the progress of jobs for clients of other schedulers."""
        for job_id, (run, _) in list(self._running.items()):
            progress = run.current_progress()
            if progress != self._published.get(job_id):
                self._published[job_id] = progress
                await self._records.write_progress(run.job, progress)
