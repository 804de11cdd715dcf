"""Keeps a replica of all jobs in memory, by watching the state store."""

import asyncio
import logging
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import AsyncSleep
from caraway_core.errors import CarawayError, ShuttingDownError, StateAwayError
from caraway_core.ids import JobId, PrincipalId
from caraway_core.protocols.state import StateEntry, StateStore, StateWatch
from caraway_scheduler.jobs import codec
from caraway_scheduler.jobs.job_index import JobIndex
from caraway_scheduler.jobs.model import Job, JobStatus, StoredJob
from caraway_scheduler.jobs.records import JOBS, job_id_in

logger = logging.getLogger(__name__)

_DELAYS = Delays(0.1, 5.0)
_STEADY_S = 5.0
_READ_AT_ONCE = 256
_CATCH_UP_S = 10.0

Condition = Callable[[Job | None], bool]
Subscriber = Callable[[StoredJob], None]


@dataclass(eq=False, slots=True)
class _Waiter:
    condition: Condition
    woken: asyncio.Future[None]


class Replica:
    """Follows the jobs of all principals; it may lag slightly behind the store.

    Entries that cannot be read, such as those of a newer version, are left out; `unreadable` has
    their ids.
    """

    def __init__(self, store: StateStore, pause: AsyncSleep = asyncio.sleep) -> None:
        # None until every job has been read, and while the store is away.
        self._watch: StateWatch | None = None
        self._has_watch = asyncio.Event()
        self._store = store
        self._pause = pause
        self._held: dict[JobId, StoredJob] = {}
        # The jobs of each principal, the newest last.
        self._of: dict[PrincipalId, list[tuple[datetime, JobId]]] = {}
        self._index = JobIndex()
        self._unreadable: set[JobId] = set()
        self._counts: Counter[JobStatus] = Counter()
        self._waiters: dict[JobId, set[_Waiter]] = {}
        self._subscribers: list[Subscriber] = []
        self._forgetters: list[Callable[[JobId], None]] = []
        # Everything up to this revision is known, so a missing job was deleted.
        self._upto = 0
        self._is_away = False
        # Jobs written here during a scan, which the scan may have missed.
        self._meanwhile: set[JobId] | None = None

    @property
    def is_current(self) -> bool:
        """True while every job has been read and the watch is running."""
        return self._watch is not None

    @property
    def unreadable(self) -> frozenset[JobId]:
        """The ids of the entries that cannot be read."""
        return frozenset(self._unreadable)

    @property
    def counts(self) -> Mapping[JobStatus, int]:
        """The number of jobs in each status; statuses without jobs may be missing."""
        return {status: count for status, count in self._counts.items() if count}

    def under_way(self) -> Sequence[StoredJob]:
        """Return the jobs that have not ended."""
        return [self._held[job_id] for job_id in self._index.under_way()]

    def expired(self, now: datetime) -> Sequence[StoredJob]:
        """Return the jobs whose answers have expired and are not closed yet."""
        return [self._held[job_id] for job_id in self._index.expired(now)]

    def get(self, job_id: JobId) -> StoredJob | None:
        """Return a job, or None."""
        return self._held.get(job_id)

    def jobs_of(self, principal: PrincipalId) -> Iterator[StoredJob]:
        """Yield the jobs of a principal, newest first; take them before the next await."""
        return (self._held[job_id] for _, job_id in reversed(self._of.get(principal, ())))

    async def catch_up(self) -> None:
        """Return once the replica has all that was written before this call.

        Raises:
            StateAwayError: the store does not respond, or its jobs are still being read.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                while self._watch is None:
                    await self._has_watch.wait()
                await self._watch.catch_up()
        except (StateAwayError, ShuttingDownError):
            raise
        except (CarawayError, TimeoutError) as exc:
            failure = "the queries are still being read from the state store; try again later"
            raise StateAwayError(failure) from exc

    def subscribe(
        self, subscriber: Subscriber, forgetter: Callable[[JobId], None] | None = None
    ) -> None:
        """Call `subscriber` with every new revision of a job, including those written here.

        `forgetter` is called with the jobs that are removed. Neither may raise.
        """
        self._subscribers.append(subscriber)
        if forgetter is not None:
            self._forgetters.append(forgetter)

    def saw(self, held: StoredJob) -> None:
        """Record a job that this process wrote or read, before the watch reports it."""
        job_id = held.job.job_id
        if job_id not in self._held and held.revision <= self._upto:
            return  # It was deleted in the meantime.
        if self._meanwhile is not None:
            self._meanwhile.add(job_id)
        self._put(held)

    async def wait_for(self, job_id: JobId, condition: Condition, timeout_s: float) -> None:
        """Return once the condition holds for the job, or after the timeout.

        The condition is called with None while the job is unknown, and must not raise.
        """
        stored_job = self._held.get(job_id)
        if condition(stored_job.job if stored_job else None):
            return
        waiter = _Waiter(condition, asyncio.get_running_loop().create_future())
        self._waiters.setdefault(job_id, set()).add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.woken
        except TimeoutError:
            pass
        finally:
            waiting = self._waiters[job_id]
            waiting.discard(waiter)
            if not waiting:
                del self._waiters[job_id]

    async def follow_jobs(self) -> None:
        """Follow the store until cancelled or until it is closed; restart after failures."""
        loop = asyncio.get_running_loop()
        again = Backoff(_DELAYS)
        while True:
            began_at = loop.time()
            try:
                await self._follow()
                return
            except ShuttingDownError:
                return
            except CarawayError as exc:
                if loop.time() - began_at > _STEADY_S:
                    again.succeeded()
                if not self._is_away:
                    logger.warning(
                        "job replica lost the state store", extra={"reason": exc.message}
                    )
                self._is_away = True
            finally:
                self._watch = None
                self._has_watch.clear()
            await self._pause(again.failed())

    async def _follow(self) -> None:
        self._meanwhile = set()
        # Start the watch before the scan, so that it reports changes made during the scan.
        watch = self._store.watch(JOBS)
        await self._replace(await self._store.scan(JOBS), self._meanwhile)
        self._meanwhile = None
        self._watch = watch
        self._has_watch.set()
        if self._is_away:
            logger.info("job replica is current again", extra={"jobs": len(self._held)})
        self._is_away = False
        async for entry in watch:
            self._take(entry)
            self._upto = max(self._upto, entry.revision)

    async def _replace(self, entries: Sequence[StateEntry], meanwhile: Set[JobId]) -> None:
        for start in range(0, len(entries), _READ_AT_ONCE):
            for entry in entries[start : start + _READ_AT_ONCE]:
                self._take(entry)
            # Reading many jobs takes a while, so let other tasks run.
            await asyncio.sleep(0)
        ids = {job_id_in(entry.key) for entry in entries}
        for job_id in (self._held.keys() | self._unreadable) - ids - meanwhile:
            self._drop(job_id)
        self._upto = max([self._upto, *(entry.revision for entry in entries)])

    def _take(self, entry: StateEntry) -> None:
        job_id = job_id_in(entry.key)
        standing = self._held.get(job_id)
        if standing is not None and standing.revision >= entry.revision:
            return
        if not entry.value:
            self._drop(job_id)
            return
        try:
            job = codec.decode_job(entry.value)
        except CarawayError as exc:
            if job_id not in self._unreadable:
                logger.warning(
                    "job cannot be read", extra={"job_id": job_id, "reason": exc.message}
                )
            self._drop(job_id)
            self._unreadable.add(job_id)
        else:
            self._put(StoredJob(job, entry.revision))

    def _put(self, stored_job: StoredJob) -> None:
        job = stored_job.job
        standing = self._held.get(job.job_id)
        if standing is not None:
            if standing.revision >= stored_job.revision:
                return
            self._counts[standing.job.status] -= 1
        else:
            insort(self._of.setdefault(job.principal, []), _place(job))
        self._unreadable.discard(job.job_id)
        self._held[job.job_id] = stored_job
        self._counts[job.status] += 1
        self._index.put(job)
        for subscriber in self._subscribers:
            subscriber(stored_job)
        self._wake(job.job_id, job)

    def _drop(self, job_id: JobId) -> None:
        self._unreadable.discard(job_id)
        standing = self._held.pop(job_id, None)
        if standing is not None:
            self._counts[standing.job.status] -= 1
            self._index.drop(job_id)
            own = self._of[standing.job.principal]
            own.remove(_place(standing.job))
            if not own:
                del self._of[standing.job.principal]
            for forgetter in self._forgetters:
                forgetter(job_id)
            self._wake(job_id, None)

    def _wake(self, job_id: JobId, job: Job | None) -> None:
        for waiter in self._waiters.get(job_id, ()):
            if not waiter.woken.done() and waiter.condition(job):
                waiter.woken.set_result(None)


def _place(job: Job) -> tuple[datetime, JobId]:
    return job.created_at, job.job_id
