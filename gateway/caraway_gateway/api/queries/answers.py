"""Opens stored answers: their manifest, a selection of chunks, and the rows."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import JobNotFoundError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo
from caraway_gateway.api.queries.errors import NoResultsError
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.service import JobService
from caraway_scheduler.queries.storing import StoredAnswer

_EXPIRED = "the results of query '{}' have expired; submit it again"


class ChunkRows:
    """The rows of some chunks; the next batch is fetched while the current one is used."""

    def __init__(self, schema: pa.Schema, batches: AsyncIterator[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = batches
        self._next = tasks.begin(_fetch(batches))

    async def open(self) -> None:
        """Wait for the first batch, so that most errors are raised here."""
        await asyncio.wait((self._next,))
        if self._next.exception() is not None:
            await self._next

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self._next
        if batch is None:
            raise StopAsyncIteration
        self._next = tasks.begin(_fetch(self._batches))
        return batch

    async def aclose(self) -> None:
        """Stop reading at any point."""
        self._next.cancel()
        await asyncio.wait((self._next,))
        if not self._next.cancelled():
            # Retrieve the exception, so that asyncio does not log it as never retrieved.
            self._next.exception()
        if isinstance(self._batches, AsyncGenerator):
            await self._batches.aclose()


async def manifest(service: JobService, job: Job, unfinished: int) -> StoredAnswer:
    """Return what the job has stored; `unfinished` is the answer while it has not ended.

    Raises:
        NoResultsError: the job has no results, not yet or no longer.
    """
    match job.status:
        case "PENDING" | "RUNNING":
            raise NoResultsError(
                unfinished,
                f"query '{job.job_id}' is {job.status}; poll /v1/queries/{job.job_id}/status, "
                "optionally with wait=SECONDS, until it has SUCCEEDED",
                job.status,
            )
        case "FAILED":
            cause = job.error.message if job.error else "the cause is unknown"
            raise NoResultsError(500, cause, job.status)
        case "CANCELLED":
            raise NoResultsError(410, f"query '{job.job_id}' was cancelled", job.status)
        case "CLOSED":
            raise _expired(job)
    try:
        return await service.manifest(job)
    except JobNotFoundError as exc:
        raise _expired(job) from exc


async def described(service: JobService, job: Job) -> tuple[Job, StoredAnswer | None]:
    """Return the current state of the job, and its stored results if it has succeeded."""
    if job.status != "SUCCEEDED":
        return job, None
    try:
        return job, await service.manifest(job)
    except JobNotFoundError:
        return replace(job, status="CLOSED"), None


def chunk(manifest: StoredAnswer, job: Job, index: int) -> Sequence[ChunkInfo]:
    """Return the chunk at an index; an answer without rows has one empty chunk.

    Raises:
        NoResultsError: the chunk does not exist.
    """
    if 0 <= index < max(1, len(manifest.chunks)):
        return manifest.chunks[index : index + 1]
    last = f"its chunks are 0 to {len(manifest.chunks) - 1}"
    known = last if manifest.chunks else "it has no rows, so only chunk 0"
    raise NoResultsError(404, f"query '{job.job_id}' has no chunk {index}; {known}", job.status)


async def read(
    service: JobService, job: Job, schema: pa.Schema, chunks: Sequence[ChunkInfo]
) -> ChunkRows:
    """Open some chunks, whose reading must be closed.

    Raises:
        NoResultsError: the chunks have expired, or are missing or damaged.
    """
    reading = ChunkRows(schema, service.read(job, chunks))
    try:
        await reading.open()
    except BaseException as exc:
        await reading.aclose()
        if isinstance(exc, ResultStoreError):
            raise await _unreadable(service, job, exc) from exc
        raise
    return reading


async def _unreadable(service: JobService, job: Job, exc: ResultStoreError) -> NoResultsError:
    """Distinguish results that expired during the request from damaged ones."""
    try:
        now = await service.find(job.principal, job.job_id)
    except JobNotFoundError:
        return _expired(job)
    if now.status == "CLOSED":
        return _expired(job)
    return NoResultsError(500, exc.message, job.status)


def _expired(job: Job) -> NoResultsError:
    return NoResultsError(410, _EXPIRED.format(job.job_id), "CLOSED")


async def _fetch(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    # A task must not raise StopAsyncIteration, so None marks the end of the rows.
    return await anext(batches, None)
