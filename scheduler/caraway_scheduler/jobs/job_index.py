"""Finds the jobs that are under way and those whose answers expire, without a look at all jobs."""

import heapq
from collections.abc import Sequence
from datetime import datetime

from caraway_core.ids import JobId
from caraway_scheduler.jobs.model import Job

_LEAST_STALE = 1024


class JobIndex:
    """Follows the jobs of a replica, each in its last revision."""

    def __init__(self) -> None:
        self._under_way: dict[JobId, None] = {}
        self._expires_at: dict[JobId, datetime] = {}
        # May have entries of jobs that are gone or changed; `_expires_at` decides.
        self._heap: list[tuple[datetime, JobId]] = []

    def put(self, job: Job) -> None:
        """Take the last revision of a job."""
        if job.is_over:
            self._under_way.pop(job.job_id, None)
        else:
            self._under_way[job.job_id] = None
        expires_at = job.expires_at if job.status == "SUCCEEDED" else None
        if expires_at is None:
            self._expires_at.pop(job.job_id, None)
        elif self._expires_at.get(job.job_id) != expires_at:
            self._expires_at[job.job_id] = expires_at
            heapq.heappush(self._heap, (expires_at, job.job_id))
            self._compact()

    def drop(self, job_id: JobId) -> None:
        """Forget a job that was removed."""
        self._under_way.pop(job_id, None)
        self._expires_at.pop(job_id, None)

    def under_way(self) -> Sequence[JobId]:
        """Return the jobs that have not ended, those that came first before others."""
        return list(self._under_way)

    def expired(self, now: datetime) -> Sequence[JobId]:
        """Return the jobs whose answers have expired, those that expired first before others."""
        due = set[tuple[datetime, JobId]]()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._expires_at.get(entry[1]) == entry[0]:
                due.add(entry)
        for entry in due:  # Until they are closed, which may fail.
            heapq.heappush(self._heap, entry)
        return [job_id for _, job_id in sorted(due)]

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._expires_at) + _LEAST_STALE:
            self._heap = [(at, job_id) for job_id, at in self._expires_at.items()]
            heapq.heapify(self._heap)
