"""The interface of the job service, for HTTP and Flight."""

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
    """The jobs of principals; a principal never sees the jobs of another.

    Every method raises StateAwayError while the state store is away. Methods with a job id raise
    JobNotFoundError if the principal has no such job.
    """

    async def submit(
        self, principal: Principal, request: JobRequest, span: Span, idempotency_key: str = ""
    ) -> Job:
        """Accept a job durably; a repeated idempotency key returns the same job.

        Raises:
            InvalidQueryError: the statement is empty or too long.
            JobConflictError: the key was used for another request.
            OverloadedError: the queue is full.
            ShuttingDownError: the process accepts no more work.
        """
        ...

    async def find(self, principal: PrincipalId, job_id: JobId) -> Job:
        """Return a job of the principal."""
        ...

    async def wait(self, principal: PrincipalId, job_id: JobId, timeout_s: float) -> Job:
        """Wait until the job ends or the timeout expires, and return it."""
        ...

    async def cancel(self, principal: PrincipalId, job_id: JobId) -> Job:
        """Cancel the job unless it is over, and return it."""
        ...

    async def list(
        self, principal: PrincipalId, status: JobStatus | None, limit: int
    ) -> Sequence[Job]:
        """Return the newest jobs of a principal.

        Jobs with an expired answer are returned only if `status` selects them.
        """
        ...

    async def manifest(self, job: Job) -> StoredAnswer:
        """Return the manifest of the answer of a job that succeeded.

        Raises:
            JobNotFoundError: the answer has expired.
        """
        ...

    async def progress(self, job: Job) -> JobProgress | None:
        """Return the progress of a job and what it waits for, or None if it is unknown."""
        ...

    def read(self, job: Job, chunks: Sequence[ChunkInfo]) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows of some chunks of the job's manifest, each verified before use.

        Raises:
            ResultStoreError: a chunk is missing or damaged.
        """
        ...
