"""Assembles the job components of one scheduler."""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.manifest.values.runtime import JobSettings as JobSettings
from caraway_core.manifest.values.runtime import QuotaSettings
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.jobs import owners, sweeping
from caraway_scheduler.jobs.committing import Committer
from caraway_scheduler.jobs.kept import KeptJobs
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.owners import JobOwner, Owners
from caraway_scheduler.jobs.queue import FairQueue
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica
from caraway_scheduler.jobs.runner import (
    FULL_PATIENCE_S,
    CatalogView,
    JobResults,
    JobRun,
    JobRunner,
    now,
)
from caraway_scheduler.jobs.scheduling import JobScheduler
from caraway_scheduler.jobs.service import JobService
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.jobs.sweeping import Sweeper
from caraway_scheduler.jobs.tallies import JobTallies
from caraway_scheduler.queries import texts

logger = logging.getLogger(__name__)
_DISK_SHARE = 4
_QUOTAS = QuotaSettings()
LEAST_KEPT_S = 3600.0
"""The seconds for which a job is kept at least, even if its answer expires earlier.
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals and timeouts of the job components."""

    round_s: float = owners.ROUND_S
    grace_s: float = owners.GRACE_S
    ttl_s: float = owners.TTL_S
    expire_every_s: float = sweeping.EXPIRE_EVERY_S
    orphans_every_s: float = sweeping.ORPHANS_EVERY_S
    full_patience_s: float = FULL_PATIENCE_S


@dataclass(frozen=True, slots=True)
class Jobs:
    """The job components of one scheduler: the service for the API and the background loops."""

    service: JobService
    scheduler: JobScheduler
    replica: Replica
    sweeper: Sweeper
    tallies: JobTallies
    results: ResultStore
    kept: KeptJobs

    def begin_jobs(self) -> None:
        """Allow jobs to run, once the catalog is loaded."""
        self.scheduler.begin_jobs()

    async def run_jobs(self) -> None:
        """Run the background loops until cancelled.

        Raises:
            CarawayError: another scheduler works under the same id.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.replica.follow_jobs())
            tasks.create_task(self.scheduler.run_jobs())
            tasks.create_task(self.sweeper.sweep_jobs())
            tasks.create_task(self._check())

    async def stop(self, timeout_s: float) -> None:
        """Accept no more jobs; unfinished jobs continue elsewhere or after a restart."""
        self.service.stop()
        await self.scheduler.stop(timeout_s)

    async def _check(self) -> None:
        # Checked in the background: an unavailable bucket must not prevent everything else from
        # serving.
        try:
            await self.results.check()
        except CarawayError as exc:
            logger.warning("job results cannot be stored", extra={"cause": exc.message})


async def open_jobs(
    store: StateStore,
    own: JobOwner,
    place: ResultPlace,
    settings: JobSettings,
    dispatch: Dispatch,
    catalog: CatalogView,
    history: TaskHistory,
    on_written: Callable[[], None],
    pace: Pace = Pace(),
    most_sql_bytes: int = texts.MOST_BYTES,
    quotas: QuotaSettings = _QUOTAS,
) -> Jobs:
    """Open the result store and assemble the components; nothing runs yet.

    Raises:
        CarawayError: the result store cannot be used.
    """
    results = await asyncio.to_thread(_open_results, place)
    records = JobRecords(store)
    replica = Replica(store)
    kept = KeptJobs(
        replica,
        records,
        results,
        max(quotas.max_jobs, settings.max_queued),
        await asyncio.to_thread(_most_result_bytes, place, quotas),
    )
    tallies = JobTallies()
    retention_s = settings.retention_s
    kept_s = max(retention_s, LEAST_KEPT_S)
    shared = SharedJobs(records, replica, Committer(records, replica), kept_s)
    runner = JobRunner(
        dispatch,
        catalog,
        shared,
        JobResults(results, place, timedelta(seconds=retention_s)),
        on_written,
        pace.full_patience_s,
    )

    def places() -> int:
        if settings.max_concurrent is not None:
            return settings.max_concurrent
        ready = (each.cores for each in dispatch.executors() if each.is_ready)
        return max(1, sum(ready))

    def on_end(run: JobRun, job: Job) -> None:
        if job.totals is not None:
            tallies.stored_rows += job.totals.rows
            tallies.stored_bytes += job.totals.size_bytes
        history.add(_record(run, job))

    scheduler = JobScheduler(
        runner,
        FairQueue(settings.max_queued),
        Owners(store, own, time.monotonic, pace.grace_s, pace.ttl_s, pace.round_s),
        shared,
        tallies,
        places,
        on_end,
    )
    service = JobService(shared, scheduler, results, tallies, now, most_sql_bytes, kept)
    sweeper = Sweeper(
        shared,
        results,
        now,
        pace.expire_every_s,
        pace.orphans_every_s,
        kept.results,
    )
    return Jobs(service, scheduler, replica, sweeper, tallies, results, kept)


def _open_results(place: ResultPlace) -> ResultStore:
    store_class = registry.RESULT_STORES.load(place.kind)
    store: ResultStore = store_class.at(place)
    return store


def _most_result_bytes(place: ResultPlace, quotas: QuotaSettings) -> int | None:
    """Return the most bytes of one key: by default a quarter of the disk; no limit in a bucket."""
    if quotas.max_job_results_size_bytes is not None or place.store is not None:
        return quotas.max_job_results_size_bytes
    try:
        return shutil.disk_usage(place.path).total // _DISK_SHARE
    except OSError:
        return None


def _record(run: JobRun, job: Job) -> TaskRecord:
    ended_ns = time.time_ns()
    rows = job.totals.rows if job.totals else 0
    return TaskRecord(
        span=run.span,
        task="sql_query",
        input=job.request.sql,
        start_ns=ended_ns - int((time.monotonic() - run.began_at) * 1e9),
        end_ns=ended_ns,
        error_message=job.error.message if job.error else None,
        labels={
            "protocol": "job",
            "job_id": job.job_id,
            "job_status": job.status,
            "rows_produced": str(rows),
        },
        principal=job.principal,
    )
