"""The job service behind the API: submit, find, wait for, cancel, list and read jobs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from itertools import islice

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import JobNotFoundError, ShuttingDownError
from caraway_core.ids import JobId, PrincipalId, QueryId, new_job_id
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.kept import KeptJobs
from caraway_scheduler.jobs.model import Job, JobProgress, JobRequest, JobStatus, StoredJob
from caraway_scheduler.jobs.scheduling import JobScheduler
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.jobs.tallies import JobTallies
from caraway_scheduler.queries import texts
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving.access import Principal
from caraway_serving.spans import Span

MOST_WAIT_S = 60.0
_MANIFESTS_KEPT = 64


class JobService:
    """Implements `JobDesk` over the state store and the jobs of this process."""

    def __init__(
        self,
        shared: SharedJobs,
        scheduler: JobScheduler,
        results: ResultStore,
        tallies: JobTallies,
        clock: DateClock,
        most_sql_bytes: int,
        kept: KeptJobs,
    ) -> None:
        self._stopping = asyncio.Event()
        self._records = shared.records
        self._replica = shared.replica
        self._committer = shared.committer
        self._scheduler = scheduler
        self._results = results
        self._tallies = tallies
        self._clock = clock
        self._kept_s = shared.kept_s
        self._most_sql_bytes = most_sql_bytes
        self._kept = kept
        # Manifests never change, and results are read chunk by chunk.
        self._manifests: dict[str, StoredAnswer] = {}

    def stop(self) -> None:
        """Accept no more jobs, and end all waits."""
        self._stopping.set()

    async def submit(
        self, principal: Principal, request: JobRequest, span: Span, idempotency_key: str = ""
    ) -> Job:
        """Take a job; one that this returned is not lost. The same key gives the same job again.

        Raises:
            InvalidQueryError: the statement is empty.
            JobConflictError: the key was used for another request.
            OverloadedError: the queue is full, or the principal has too many jobs.
            ShuttingDownError: the process takes no more work.
        """
        if self._stopping.is_set():
            raise ShuttingDownError("Runtime is shutting down")
        texts.check(request.sql, self._most_sql_bytes)
        job_id = new_job_id()
        if idempotency_key:
            job_id = await self._records.remember_request(
                principal.id, idempotency_key, request, job_id, self._kept_s
            )
            first = await self._records.get(principal.id, job_id)
            if first is not None:
                return first.job
        job = states.submitted(
            job_id,
            principal.id,
            not principal.may_write,
            request,
            self._scheduler.owner,
            self._clock(),
        )
        self._scheduler.check_room(job)
        await self._kept.make_room(job)
        try:
            stored_job = await self._records.create(job)
        except BaseException:
            self._kept.not_written(job)
            raise
        if stored_job.job != job:
            return stored_job.job  # The same request was submitted twice at the same time.
        self._tallies.submitted += 1
        self._replica.saw(stored_job)
        self._scheduler.add(stored_job, span)
        return stored_job.job

    async def find(self, principal: PrincipalId, job_id: JobId) -> Job:
        return self._present((await self._held(principal, job_id)).job)

    async def wait(self, principal: PrincipalId, job_id: JobId, timeout_s: float) -> Job:
        """Return the job once it is over, or its present state after the time."""
        stored_job = await self._held(principal, job_id)
        if not stored_job.job.is_over and timeout_s > 0:
            await self._wait_here(job_id, min(timeout_s, MOST_WAIT_S))
            stored_job = await self._held(principal, job_id)
        return self._present(stored_job.job)

    async def cancel(self, principal: PrincipalId, job_id: JobId) -> Job:
        """End the job, unless it is over; return its state after that."""
        while True:
            stored_job = await self._held(principal, job_id)
            if stored_job.job.is_over:
                return self._present(stored_job.job)
            cancelled = states.cancelled(stored_job.job, self._clock())
            written = await self._committer.attempt(stored_job, cancelled, self._kept_s)
            if written is not None:
                return written.job

    async def list(
        self, principal: PrincipalId, status: JobStatus | None, limit: int
    ) -> Sequence[Job]:
        """Return the newest jobs of a principal.

        Jobs whose results have expired are left out, unless `status` asks for them.
        """
        await self._replica.catch_up()
        jobs = (self._present(stored_job.job) for stored_job in self._replica.jobs_of(principal))
        if status is None:
            wanted = (job for job in jobs if job.status != "CLOSED")
        else:
            wanted = (job for job in jobs if job.status == status)
        return list(islice(wanted, limit))

    async def manifest(self, job: Job) -> StoredAnswer:
        """Return the manifest of the results of a job that succeeded.

        Raises:
            JobNotFoundError: the results have expired.
        """
        answer = self._manifests.get(job.result_key)
        if answer is None:
            answer = await self._records.manifest(job)
            if answer is None:
                raise JobNotFoundError(f"the results of job {job.job_id} have expired")
            while len(self._manifests) >= _MANIFESTS_KEPT:
                del self._manifests[next(iter(self._manifests))]
            self._manifests[job.result_key] = answer
        return answer

    async def progress(self, job: Job) -> JobProgress | None:
        """Return how far a job is and what it waits for, if that is known here."""
        if job.is_over:
            return None
        return self._scheduler.progress(job.job_id) or await self._records.progress(job)

    def statement_of(self, job: Job) -> QueryId | None:
        """Return the statement that runs a job in this process, or None."""
        return self._scheduler.statement_of(job.job_id)

    async def read(self, job: Job, chunks: Sequence[ChunkInfo]) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows of some chunks of the job's manifest; each is checked before it is shown.

        Raises:
            ResultStoreError: a chunk is missing or damaged.
        """
        for chunk in chunks:
            async with aclosing(self._reading(job, chunk)) as batches:
                async for batch in batches:
                    yield batch

    async def _reading(self, job: Job, chunk: ChunkInfo) -> AsyncGenerator[pa.RecordBatch]:
        async for batch in self._results.read_chunk(job.result_key, chunk):
            yield batch

    async def _wait_here(self, job_id: JobId, timeout_s: float) -> None:
        """Wait until the job ends or this process stops, since a stop does not wait for readers."""
        over = tasks.begin(self._replica.wait_for(job_id, _is_over, timeout_s))
        stopping = tasks.begin(self._stopping.wait())
        try:
            await asyncio.wait((over, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            stopping.cancel()

    async def _held(self, principal: PrincipalId, job_id: JobId) -> StoredJob:
        stored_job = await self._records.get(principal, job_id)
        if stored_job is None:
            raise JobNotFoundError(f"no query '{job_id}'; GET /v1/queries lists yours")
        return stored_job

    def _present(self, job: Job) -> Job:
        """Return the job as it is now: its answer may have expired before the next sweep."""
        now = self._clock()
        if job.status == "SUCCEEDED" and job.expires_at is not None and job.expires_at <= now:
            return states.closed(job, now)
        return job


def _is_over(job: Job | None) -> bool:
    # None: the replica has not received the job yet.
    return job is not None and job.is_over
