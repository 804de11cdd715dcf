"""What the API, HTTP and Flight alike, may ask of jobs."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import JobId, PrincipalId
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.jobs.model import Job, JobProgress, JobRequest, JobStatus
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving.access import Principal
from caraway_serving.spans import Span

MOST_WAIT_S = 60.0


class JobDesk(Protocol):
    """Jobs of principals. Nobody learns of a job of somebody else.

    Every method raises StateAwayError while the state store does not answer, and those that take
    an id JobNotFoundError when the principal has no such job.
    """

    async def submit(
        self, principal: Principal, request: JobRequest, span: Span, idempotency_key: str = ""
    ) -> Job:
        """Take a job; what this returned is not lost. The same key gives the same job again.

        Raises:
            InvalidQueryError: the statement is empty.
            JobConflictError: the key was used for another request.
            OverloadedError: as many jobs wait as may.
            ShuttingDownError: the process takes no more work.
        """
        ...

    async def find(self, principal: PrincipalId, job_id: JobId) -> Job: ...

    async def wait(self, principal: PrincipalId, job_id: JobId, timeout_s: float) -> Job:
        """Return the job once it is over, or as it stands after the time."""
        ...

    async def cancel(self, principal: PrincipalId, job_id: JobId) -> Job:
        """End the job, unless it is over; return it as it then stands."""
        ...

    async def list(
        self, principal: PrincipalId, status: JobStatus | None, limit: int
    ) -> Sequence[Job]:
        """Return the newest jobs of a principal; those whose answer has expired are left out,
        unless they are asked for by their status."""
        ...

    async def manifest(self, job: Job) -> StoredAnswer:
        """Return what a job that succeeded has stored.

        Raises:
            JobNotFoundError: it has expired meanwhile.
        """
        ...

    async def progress(self, job: Job) -> JobProgress | None:
        """Return how far a job is and what it waits for, if that is known here."""
        ...

    def read(self, job: Job, chunks: Sequence[ChunkInfo]) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows of some chunks of the job's manifest; each is checked before it is shown.

        Raises:
            ResultStoreError: one is missing or damaged.
        """
        ...
