"""Runs a job: executes its statement and stores the answer as chunks and a manifest."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    CatalogMovedError,
    DatasetDamagedError,
    DatasetLoadingError,
    DiskFullError,
    ModelNotReadyError,
    OverloadedError,
    QueryCancelledError,
    ResultStoreAwayError,
    ResultStoreError,
    ShuttingDownError,
    outcomes,
)
from caraway_core.ids import PUBLIC, CatalogVersion, QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import Dispatch, StatementProgress
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.storing import (
    StoredChunk,
    StoreOrder,
    in_order,
    too_large,
)
from caraway_core.sqltext import writing
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace
from caraway_scheduler.jobs import failures, states
from caraway_scheduler.jobs.model import Job, JobError, JobProgress, StoredJob, Totals
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.queries import storing
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving import spans
from caraway_serving.spans import Span

logger = logging.getLogger(__name__)
CatalogView = Callable[[], tuple[CatalogVersion, frozenset[TableName]]]
_CUTS = 3
"""The number of answers that lost executors may cut short before the job fails."""
_PATIENCE_S = 600.0
"""The seconds that a job waits while there are no executors."""
FULL_PATIENCE_S = 60.0
"""The seconds that a job waits for a full disk or an unavailable store before it fails."""
_DELAYS = Delays(0.5, 5.0)
_MANIFESTS_KEPT = 2
"""Manifests expire after this many times the retention of jobs."""


@dataclass(slots=True)
class JobRun:
    """A job that runs in this process."""

    held: StoredJob
    span: Span
    progress: Callable[[QueryId], StatementProgress | None]
    began_at: float = field(default_factory=time.monotonic)
    query_id: QueryId | None = None
    chunks: list[StoredChunk] = field(default_factory=list)
    waits_for: str = ""
    is_done: bool = False
    is_counted: bool = False
    """True if the job's record shows that this process has started it."""
    has_begun: bool = False
    is_settling: bool = False
    """True if the outcome is being written; a change notification is then caused by this write."""

    @property
    def job(self) -> Job:
        """The job at the revision that this process holds."""
        return self.held.job

    def current_progress(self) -> JobProgress:
        """Return the progress of the job."""
        stored = in_order(self.chunks)
        progress = self.progress(self.query_id) if self.query_id else None
        if progress is None:
            progress = StatementProgress(int(self.is_done), 1, int(self.is_done), 1)
        return JobProgress(
            progress.stages_done,
            progress.stages_total,
            progress.tasks_done,
            progress.tasks_total,
            sum(chunk.row_count for chunk in stored),
            sum(chunk.size_bytes for chunk in stored),
            self.waits_for,
        )


@dataclass(frozen=True, slots=True)
class JobResults:
    """Where results of jobs are stored, and for how long they stay after their jobs have ended."""

    store: ResultStore
    place: ResultPlace
    retention: timedelta


class JobRunner:
    """Runs jobs that this process owns."""

    def __init__(
        self,
        dispatch: Dispatch,
        catalog: CatalogView,
        shared: SharedJobs,
        results: JobResults,
        on_written: Callable[[], None] = lambda: None,
        full_patience_s: float = FULL_PATIENCE_S,
    ) -> None:
        self._dispatch = dispatch
        self._catalog = catalog
        self._records = shared.records
        self._committer = shared.committer
        self._results = results
        self._kept_s = shared.kept_s
        self._on_written = on_written
        self._full_patience_s = full_patience_s

    def prepare(self, held: StoredJob, span: Span) -> JobRun:
        """Return a run of the job that has not started yet."""
        return JobRun(held, span, self._dispatch.progress)

    async def run_job(self, run: JobRun) -> Job | None:
        """Run a job to its end; returns None if another process took it in the meantime.

        Cancelling this coroutine stops the work and leaves the job in its current state.
        """
        _, writable = self._catalog()
        request = run.job.request
        may_write = not run.job.is_read_only
        writes = may_write and bool(writable) and writing.may_change(request.sql)
        began = await self._commit(run, states.began(run.job, now(), writes))
        if began is None:
            return None
        run.is_counted = True
        spans.current.set(replace(run.span, principal=run.job.principal))
        try:
            manifest = await self._in_time(run)
        except BaseException as exc:
            if tasks.ends(exc):
                await self._discard(run)
                raise
            error = failures.explained(exc, run.job.job_id, has_begun=run.has_begun)
            return await self._fail(run, error)
        return await self._succeed(run, manifest)

    async def _in_time(self, run: JobRun) -> StoredAnswer:
        timeout_s = run.job.request.timeout_s
        if timeout_s is None:
            return await self._persistently(run)
        started_at = run.job.started_at
        assert started_at is not None
        # After a takeover, only the remaining time of the job's timeout is left.
        left_s = timeout_s - (now() - started_at).total_seconds()
        try:
            async with asyncio.timeout(max(0.0, left_s)) as limit:
                return await self._persistently(run)
        except TimeoutError:
            if not limit.expired():
                raise
        raise failures.timed_out(timeout_s)

    async def _persistently(self, run: JobRun) -> StoredAnswer:
        """Store the answer; retry when executors are lost, and wait while there are none."""
        cuts, again, began_s = 0, Backoff(_DELAYS), time.monotonic()
        cause: CarawayError
        while True:
            try:
                return await self._store(run)
            except (AnswerCutError, CatalogMovedError, QueryCancelledError) as exc:
                # A user's cancellation is not seen here: it cancels the run's task.
                cuts += 1
                if cuts == _CUTS or run.job.writes:
                    if isinstance(exc, QueryCancelledError):
                        raise AnswerCutError(
                            "a part of the job was cancelled by the runtime; run it again"
                        ) from exc
                    raise
                continue
            except (DatasetLoadingError, OverloadedError, ShuttingDownError) as exc:
                # The statement was refused before any work was done.
                cause, patience_s = exc, _PATIENCE_S
            except (
                DatasetDamagedError,
                DiskFullError,
                ModelNotReadyError,
                ResultStoreAwayError,
            ) as exc:
                if run.job.writes:
                    raise
                cause, patience_s = exc, self._full_patience_s
                # Its stored chunks take up space that is needed.
                await self._discard(run)
            delay_s = again.failed()
            if time.monotonic() - began_s + delay_s > patience_s:
                raise cause
            logger.info(
                "job waits to be retried", extra={"job_id": run.job.job_id, "cause": cause.message}
            )
            run.waits_for = outcomes.cause(cause)
            await asyncio.sleep(delay_s)

    async def _store(self, run: JobRun) -> StoredAnswer:
        job, request = run.job, run.job.request
        run.query_id, run.chunks = new_query_id(), []
        run.waits_for = ""
        _, writable = self._catalog()
        statement = Statement(
            sql=request.sql,
            parameters=request.parameters,
            may_write=not job.is_read_only,
            writable=frozenset() if job.is_read_only else writable,
            store=StoreOrder(self._results.place, job.result_key, request.maximum_size),
            in_background=True,
            viewer=None if job.principal == PUBLIC else job.principal,
            sources=frozenset(),
        )

        def on_word(words: list[StoredChunk]) -> None:
            run.has_begun, run.chunks = True, words
            # When many tasks store the answer, each knows the size of its own part only.
            if request.maximum_size is not None:
                _check_size(words, request.maximum_size)

        manifest = await storing.store(
            self._dispatch, run.query_id, statement, on_word, self._on_written
        )
        run.is_done = True
        await self._check_readable(job, run.chunks)
        return manifest

    async def _check_readable(self, job: Job, chunks: list[StoredChunk]) -> None:
        """Check that the scheduler can read the stored chunks: executors may use other disks."""
        counting = set(in_order(chunks))
        firsts = {each.task: each.chunk for each in reversed(chunks) if each.chunk in counting}
        for chunk in firsts.values():
            reading = self._results.store.read_chunk(job.result_key, chunk)
            try:
                async for _ in reading:
                    break
            except ResultStoreError as exc:
                raise ResultStoreError(
                    f"results that an executor stored in {self._results.place.title} cannot be "
                    f"read by the scheduler: {exc.message}; if they run on different hosts, set "
                    "runtime.scheduler.state_location to an object store or a shared folder"
                ) from exc

    async def _succeed(self, run: JobRun, manifest: StoredAnswer) -> Job | None:
        totals = Totals(
            sum(chunk.row_count for chunk in manifest.chunks),
            sum(chunk.size_bytes for chunk in manifest.chunks),
            len(manifest.chunks),
        )
        job = states.succeeded(run.job, totals, now(), self._results.retention)
        await self._write_manifest(job, manifest)
        return await self._commit(run, job)

    async def _write_manifest(self, job: Job, manifest: StoredAnswer) -> None:
        ttl_s = _MANIFESTS_KEPT * self._kept_s
        again = Backoff(_DELAYS)
        while True:
            try:
                return await self._records.write_manifest(job, manifest, ttl_s)
            except ShuttingDownError:
                raise
            except CarawayError:
                await asyncio.sleep(again.failed())

    async def _fail(self, run: JobRun, error: JobError) -> Job | None:
        job = await self._commit(run, states.failed(run.job, error, now()), self._kept_s)
        await self._discard(run)
        return job

    async def _commit(self, run: JobRun, job: Job, ttl_s: float | None = None) -> Job | None:
        run.is_settling = job.is_over
        stored_job = await self._committer.commit(run.held, job, ttl_s)
        if stored_job is None:
            # A run that could not start has stored nothing, but an earlier one of this epoch may
            # have.
            if run.is_counted:
                await self._discard(run)
            return None
        run.held = stored_job
        return stored_job.job

    async def _discard(self, run: JobRun) -> None:
        """Delete the chunks of this epoch; the sweeper deletes what cannot be deleted now."""
        try:
            await self._results.store.delete(run.job.result_key)
        except CarawayError as exc:
            logger.warning(
                "results are left to the sweeper",
                extra={"job_id": run.job.job_id, "cause": exc.message},
            )


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def _check_size(chunks: list[StoredChunk], maximum_size: int) -> None:
    # The plain sum includes chunks of lost attempts, so it only triggers the exact check.
    if sum(each.chunk.size_bytes for each in chunks) <= maximum_size:
        return
    stored = sum(chunk.size_bytes for chunk in in_order(chunks))
    if stored > maximum_size:
        raise too_large(stored, maximum_size)
