"""Writes what becomes of jobs, however long the state store is away."""

import asyncio
import logging
from typing import Protocol

from caraway_core import outcomes
from caraway_core.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.records import JobRecords

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.1, 2.0)


class Follower(Protocol):
    """Whoever wants to know of own writes at once."""

    def saw(self, held: StoredJob) -> None: ...


class Committer:
    """Moves a job from the revision at which it is held, or finds that somebody else has."""

    def __init__(self, records: JobRecords, follower: Follower) -> None:
        self._records = records
        self._follower = follower
        self._causes: dict[JobId, str] = {}

    def waits_for(self, job_id: JobId) -> str:
        """Return why a job cannot be written now; "" while it can."""
        return self._causes.get(job_id, "")

    async def commit(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Write the job; None means that it is not ours any more, and nothing was written.

        Waits for a store that is away: work that is done must not be lost for want of a
        signature. Ends only with an answer, or with the process.

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
            logger.warning("a job waits for the state store", extra=extra)
        self._causes[job.job_id] = cause

    async def attempt(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Write the job once, or raise what the store raises."""
        written = await self._records.replace(held, job, ttl_s)
        if written is None:
            # An earlier attempt may have been carried out although its answer was lost.
            standing = await self._records.get(job.principal, job.job_id)
            written = standing if standing is not None and standing.job == job else None
        if written is not None:
            self._follower.saw(written)
        return written
