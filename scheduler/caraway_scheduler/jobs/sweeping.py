"""Deletes expired answers and orphaned results from the result store."""

import asyncio
import logging

from caraway_core.concurrency.clocks import DateClock
from caraway_core.concurrency.quotas import Quota
from caraway_core.errors import CarawayError
from caraway_core.ids import JobId
from caraway_core.protocols.results import ResultStore
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.shared import SharedJobs

logger = logging.getLogger(__name__)
EXPIRE_EVERY_S = 5.0
ORPHANS_EVERY_S = 600.0


class Sweeper:
    """Closes jobs with expired answers and deletes orphaned results.

    Every scheduler sweeps: the first one closes a job, and repeated deletion is harmless. A closed
    job stays in the state store for `kept_s`, so that its owner sees that it expired.
    """

    def __init__(
        self,
        shared: SharedJobs,
        results: ResultStore,
        clock: DateClock,
        expire_every_s: float = EXPIRE_EVERY_S,
        orphans_every_s: float = ORPHANS_EVERY_S,
        quota: Quota[JobId] | None = None,
    ) -> None:
        """Take the quota that results count towards."""
        self._replica = shared.replica
        self._committer = shared.committer
        self._results = results
        self._clock = clock
        self._kept_s = shared.kept_s
        self._expire_every_s = expire_every_s
        self._orphans_every_s = orphans_every_s
        self._quota = quota

    async def sweep_jobs(self) -> None:
        """Sweep until cancelled; retry failed work in the next round."""
        looked_at: float | None = None
        loop = asyncio.get_running_loop()
        while True:
            if self._replica.is_current:
                try:
                    await self.expire()
                    if looked_at is None or loop.time() - looked_at >= self._orphans_every_s:
                        await self.remove_orphans()
                        looked_at = loop.time()
                except CarawayError as exc:
                    logger.warning("sweeping failed and is retried", extra={"cause": exc.message})
            await asyncio.sleep(self._expire_every_s)

    async def expire(self) -> None:
        """Close the jobs whose answer has expired or is too much, and delete the answers."""
        now = self._clock()
        for stored_job in self._replica.expired(now):
            await self._close(stored_job, states.closed(stored_job.job, now), "expired")
        for job_id in self._quota.surplus() if self._quota is not None else ():
            held_now = self._replica.get(job_id)
            if held_now is not None and held_now.job.status == "SUCCEEDED":
                early = states.closed_early(held_now.job, now)
                await self._close(held_now, early, "too much for one key")

    async def _close(self, stored_job: StoredJob, closed: Job, why: str) -> None:
        if await self._committer.attempt(stored_job, closed, self._kept_s) is not None:
            await self._results.delete(stored_job.job.result_key)
            logger.info("results removed", extra={"job_id": stored_job.job.job_id, "cause": why})

    async def remove_orphans(self) -> None:
        """Delete results that no job needs, left by lost owners or by crashes during deletion.

        The keys are listed before the jobs. A job is recorded before it stores anything, so a key
        without a job has never had one since.
        """
        keys = await self._results.keys()
        if not keys:
            return
        await self._replica.catch_up()
        orphans = [key for key in keys if not self._is_wanted(key)]
        for key in orphans:
            await self._results.delete(key)
        if orphans:
            logger.info("orphaned results removed", extra={"count": len(orphans)})

    def _is_wanted(self, key: str) -> bool:
        job_id, _, epoch = key.rpartition(".")
        if JobId(job_id) in self._replica.unreadable:
            return True
        stored_job = self._replica.get(JobId(job_id))
        # `isdigit` alone is also true of superscripts.
        is_number = epoch.isascii() and epoch.isdigit()
        return stored_job is not None and is_number and _wants(stored_job.job, int(epoch))


def _wants(job: Job, epoch: int) -> bool:
    """Return whether a job reads the results of an epoch, or may be writing them."""
    if job.is_over:
        return job.status == "SUCCEEDED" and epoch == job.epoch
    return epoch >= job.epoch
