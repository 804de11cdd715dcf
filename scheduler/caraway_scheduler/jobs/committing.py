"""Writes job transitions to the state store, and retries while the store is away."""

import asyncio
import logging

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, ShuttingDownError, outcomes
from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.1, 2.0)


class Committer:
    """Writes job transitions with compare-and-set, and detects changes by other processes."""

    def __init__(self, records: JobRecords, replica: Replica) -> None:
        self._records = records
        self._replica = replica
        self._causes: dict[JobId, str] = {}

    def waits_for(self, job_id: JobId) -> str:
        """Return why the job cannot be written now; "" if it can."""
        return self._causes.get(job_id, "")

    async def commit(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Write the job, retrying while the store is away; None if another process changed it.

        The result of finished work must not be lost because the store is away. So this ends only
        when the store answers or the process stops.

        Raises:
            ShuttingDownError: the store was closed.
        """
        again = Backoff(_DELAYS)
        try:
            while True:
                try:
                    return await self.attempt(held, job, ttl_s)
                except ShuttingDownError:
                    raise
                except CarawayError as exc:
                    self._note(job, outcomes.cause(exc))
                await asyncio.sleep(again.failed())
        finally:
            self._causes.pop(job.job_id, None)

    def _note(self, job: Job, cause: str) -> None:
        if job.job_id not in self._causes:
            extra = {"job_id": job.job_id, "status": job.status, "cause": cause}
            logger.warning("job waits for the state store", extra=extra)
        self._causes[job.job_id] = cause

    async def attempt(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Write the job once; None if another process changed it.

        Raises:
            CarawayError: the store cannot be used.
        """
        written = await self._records.replace(held, job, ttl_s)
        if written is None:
            # An earlier attempt may have succeeded although its answer was lost.
            standing = await self._records.get(job.principal, job.job_id)
            written = standing if standing is not None and standing.job == job else None
        if written is not None:
            self._replica.saw(written)
        return written
