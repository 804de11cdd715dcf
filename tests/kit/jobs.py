"""A job service in memory, whose jobs change only when a test changes them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pyarrow as pa

from caraway_core.errors import (
    CarawayError,
    JobConflictError,
    JobNotFoundError,
    ResultStoreError,
)
from caraway_core.errors.outcomes import JobCode
from caraway_core.ids import JobId, PrincipalId, new_job_id
from caraway_core.protocols.results import ChunkInfo
from caraway_gateway.services import Services
from caraway_scheduler.jobs.model import Job, JobError, JobProgress, JobRequest, JobStatus, Totals
from caraway_scheduler.jobs.service import JobService
from caraway_scheduler.queries import texts
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving.access import Principal
from caraway_serving.spans import Span

_START = datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC)


@dataclass
class FakeJobService:
    """A JobService without store and queue; every call raises `failure`, if set."""

    failure: CarawayError | None = None
    damaged_from: int | None = None
    progresses: dict[JobId, JobProgress] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    reads: int = 0
    open_reads: int = 0
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    _jobs: dict[JobId, Job] = field(default_factory=dict)
    _by_key: dict[tuple[PrincipalId, str], JobId] = field(default_factory=dict)
    _answers: dict[JobId, tuple[pa.Schema, list[pa.RecordBatch]]] = field(default_factory=dict)
    _moved: dict[JobId, asyncio.Event] = field(default_factory=dict)

    @property
    def last(self) -> Job:
        """The most recently submitted job."""
        return list(self._jobs.values())[-1]

    def run(self, job: Job) -> Job:
        return self._put(replace(job, status="RUNNING", started_at=_START))

    def succeed(self, job: Job, schema: pa.Schema, *chunks: pa.RecordBatch) -> Job:
        """Finish the job with these chunks as its result."""
        self._answers[job.job_id] = (schema, list(chunks))
        rows, size = sum(c.num_rows for c in chunks), sum(c.nbytes for c in chunks)
        return self._put(
            replace(
                job,
                status="SUCCEEDED",
                started_at=_START,
                completed_at=_START + timedelta(seconds=1),
                expires_at=_START + timedelta(hours=12),
                totals=Totals(rows, size, len(chunks)),
            )
        )

    def fail(self, job: Job, code: JobCode, message: str) -> Job:
        return self._put(replace(job, status="FAILED", error=JobError(code, message)))

    def expire(self, job: Job) -> Job:
        """Delete the result and close the job."""
        self.sweep(job)
        return self._put(replace(job, status="CLOSED"))

    def sweep(self, job: Job) -> None:
        """Delete only the result, like a cleanup that was interrupted."""
        self._answers.pop(job.job_id, None)

    async def submit(
        self, principal: Principal, request: JobRequest, span: Span, idempotency_key: str = ""
    ) -> Job:
        self._check()
        texts.check(request.sql)
        self.keys.append(idempotency_key)
        first = self._by_key.get((principal.id, idempotency_key)) if idempotency_key else None
        if first is not None:
            if self._jobs[first].request != request:
                raise JobConflictError("the Idempotency-Key was used for another query")
            return self._jobs[first]
        job = Job(
            new_job_id(),
            principal.id,
            not principal.may_write,
            request,
            "PENDING",
            owner="",
            epoch=0,
            created_at=_START + timedelta(seconds=len(self._jobs)),
        )
        self._by_key[(principal.id, idempotency_key)] = job.job_id
        return self._put(job)

    async def find(self, principal: PrincipalId, job_id: JobId) -> Job:
        self._check()
        job = self._jobs.get(job_id)
        if job is None or job.principal != principal:
            raise JobNotFoundError(f"no query '{job_id}'")
        return job

    async def wait(self, principal: PrincipalId, job_id: JobId, timeout_s: float) -> Job:
        job = await self.find(principal, job_id)
        try:
            async with asyncio.timeout(timeout_s):
                while not job.is_over:
                    self.waiting.set()
                    moved = self._moved[job_id]
                    await moved.wait()
                    job = self._jobs[job_id]
        except TimeoutError:
            pass
        finally:
            self.waiting.clear()
        return job

    async def cancel(self, principal: PrincipalId, job_id: JobId) -> Job:
        job = await self.find(principal, job_id)
        return job if job.is_over else self._put(replace(job, status="CANCELLED"))

    async def list(
        self, principal: PrincipalId, status: JobStatus | None, limit: int
    ) -> Sequence[Job]:
        self._check()
        found = [
            job
            for job in reversed(self._jobs.values())
            if job.principal == principal
            and (job.status == status if status else job.status != "CLOSED")
        ]
        return found[:limit]

    async def manifest(self, job: Job) -> StoredAnswer:
        self._check()
        if job.job_id not in self._answers:
            raise JobNotFoundError("its results have expired")
        schema, batches = self._answers[job.job_id]
        infos = tuple(
            ChunkInfo(index, batch.num_rows, batch.nbytes, "")
            for index, batch in enumerate(batches)
        )
        return StoredAnswer(schema, infos)

    async def progress(self, job: Job) -> JobProgress | None:
        return self.progresses.get(job.job_id)

    async def read(self, job: Job, chunks: Sequence[ChunkInfo]) -> AsyncIterator[pa.RecordBatch]:
        self.open_reads += 1
        try:
            for info in chunks:
                is_damaged = self.damaged_from is not None and info.index >= self.damaged_from
                if is_damaged or job.job_id not in self._answers:
                    raise ResultStoreError(f"chunk {info.index} of the answer is damaged")
                self.reads += 1
                yield self._answers[job.job_id][1][info.index]
        finally:
            self.open_reads -= 1

    def _put(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        self._moved.pop(job.job_id, asyncio.Event()).set()
        self._moved[job.job_id] = asyncio.Event()
        return job

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure


def with_jobs(services: Services, service: FakeJobService) -> Services:
    """Return services whose jobs are those of a job service in memory."""
    return replace(services, jobs=replace(services.jobs, service=cast(JobService, service)))
