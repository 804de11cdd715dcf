"""Job schedulers with a real engine over shared stores, which tests can kill."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.ids import (
    CatalogVersion,
    ExecutorId,
    JobId,
    NodeId,
    PrincipalId,
    QueryId,
    TableName,
)
from caraway_core.manifest.values.runtime import JobSettings as JobSettings
from caraway_core.protocols.dispatch import (
    BatchStream,
)
from caraway_core.protocols.state import StateEntry, StateStore, StateWatch
from caraway_core.statements import (
    Statement,
)
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_scheduler.jobs.model import Job, JobRequest
from caraway_scheduler.jobs.opening import Jobs, Pace, open_jobs
from caraway_scheduler.jobs.owners import TTL_S, JobOwner
from caraway_serving import spans
from caraway_serving.access import Principal
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot

ADA = Principal(PrincipalId("ada"), may_write=True)
BOB = Principal(PrincipalId("bob"), may_write=True)
WRITABLE = frozenset({TableName("notes")})


class MortalStore:
    """A state store as one process sees it, which dies before or after one of its writes.

    After its death, nothing that the process attempts takes effect.
    """

    def __init__(self, inner: StateStore) -> None:
        self._inner = inner
        self.writes: list[str] = []
        self.counts: str | tuple[str, ...] = ("jobs/", "job-manifests/")
        """Key prefixes of the writes at which it may die."""
        self.dies_at: tuple[int, str] | None = None
        self.on_death: Callable[[], None] = lambda: None
        self.is_dead = False
        self.stays_dead = True
        """False if `on_death` ends the real process."""
        self.died = asyncio.Event()
        self.away: Exception | None = None
        self.paused = asyncio.Event()
        self.paused.set()

    async def check(self) -> Sequence[str]:
        return await self._inner.check()

    async def get(self, key: str) -> StateEntry | None:
        await self._alive()
        return await self._inner.get(key)

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        await self._alive()
        return await self._inner.revisions(keys)

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        await self._alive()
        return await self._inner.scan(prefix)

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        await self._alive()
        if not key.startswith(self.counts):
            return await self._inner.compare_and_set(key, value, expected=expected, ttl_s=ttl_s)
        self.writes.append(key)
        mine = len(self.writes)
        await self._dies(mine, "before")
        revision = await self._inner.compare_and_set(key, value, expected=expected, ttl_s=ttl_s)
        await self._dies(mine, "after")
        return revision

    async def append(self, log: str, record: bytes) -> int:
        await self._alive()
        return await self._inner.append(log, record)

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        return await self._inner.read_log(log, start, limit)

    def watch(self, prefix: str) -> StateWatch:
        return self._inner.watch(prefix)

    async def aclose(self) -> None:
        pass

    def die(self) -> None:
        self.on_death()
        self.is_dead = self.stays_dead
        self.died.set()

    async def _dies(self, write: int, when: str) -> None:
        if self.dies_at == (write, when):
            self.die()
        await self._alive()

    async def _alive(self) -> None:
        if self.is_dead:
            await asyncio.Event().wait()
        await self.paused.wait()
        if self.away is not None:
            raise self.away


class GatedDispatch(WrappedDispatch):
    """Runs statements in process; tests can block each one before its start and its end."""

    def __init__(self, inner: InProcessDispatch) -> None:
        super().__init__(inner)
        self.executed: list[Statement] = []
        self.began = asyncio.Event()
        self.may_begin = asyncio.Event()
        self.may_begin.set()
        self.fails: list[BaseException] = []
        self.fails_to_load: list[BaseException] = []
        self.cores: int | None = None

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        self.executed.append(statement)
        self.began.set()
        await self.may_begin.wait()
        if self.fails:
            raise self.fails.pop(0)
        return await super().execute(query_id, statement)

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        if self.fails_to_load:
            raise self.fails_to_load.pop(0)
        return await super().load(table, spec, log)


@dataclass
class Scheduler:
    """One scheduler over the shared stores."""

    jobs: Jobs
    store: MortalStore
    dispatch: GatedDispatch
    working: "asyncio.Task[None]"
    history: TaskHistory

    async def submit(self, sql: str, by: Principal = ADA, key: str = "", **options: Any) -> Job:
        request = JobRequest(sql, **options)
        return await self.jobs.service.submit(by, request, spans.start(None), key)

    async def ended(self, job_id: JobId, by: Principal = ADA) -> Job:
        """Wait until the job ends, and return it."""

        async def look() -> Job | None:
            job = await self.jobs.service.find(by.id, job_id)
            return job if job.is_over else None

        job = await eventually(look, f"job {job_id} is over")
        assert job is not None
        return job

    async def rows(self, job: Job) -> pa.Table:
        manifest = await self.jobs.service.manifest(job)
        reading = self.jobs.service.read(job, manifest.chunks)
        return pa.Table.from_batches([batch async for batch in reading], manifest.schema)

    async def kill(self) -> None:
        """End the scheduler as SIGKILL would: no further work takes effect."""
        self.store.die()
        self.working.cancel()
        await asyncio.wait((self.working,), timeout=0.5)


class Site:
    """The shared stores: one state store, with a clock that tests move, and one result folder."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.clock = Clock(1_000_000.0)
        self.results = folder / "results"
        self.store = SqliteStateStore(folder / "state.db", self.clock, poll_s=0.02)
        self._stack = stack
        stack.push_async_callback(self.store.aclose)

    def forget_the_dead(self) -> None:
        """Let the leases of owners expire; live owners renew theirs."""
        self.clock.now += 2 * TTL_S

    async def scheduler(
        self,
        scheduler_id: str = "one",
        max_concurrent: int = 2,
        max_queued: int = 100,
        retention_s: float = 3600.0,
        *,
        begins: bool = True,
        full_patience_s: float = 30.0,
    ) -> Scheduler:
        """Start a scheduler; it ends with the block."""
        mortal = MortalStore(self.store)
        executor = LocalExecutor(EngineSettings(1, None))
        dispatch = GatedDispatch(InProcessDispatch(executor, ExecutorId(scheduler_id), 2))
        self._stack.push_async_callback(dispatch.aclose)
        await dispatch.install(snapshot({"notes": memory(text=pa.array([], pa.string()))}))
        history = TaskHistory(HistorySettings(), NodeId(scheduler_id), lambda: 0)
        jobs = await open_jobs(
            mortal,
            JobOwner.beginning(scheduler_id),
            ResultPlace("file", str(self.results)),
            JobSettings(max_concurrent, max_queued, retention_s),
            dispatch,
            lambda: (CatalogVersion(1), WRITABLE),
            history,
            lambda: None,
            Pace(
                0.02,
                0.0,
                expire_every_s=0.02,
                orphans_every_s=0.02,
                full_patience_s=full_patience_s,
            ),
        )
        working = asyncio.create_task(jobs.run_jobs())
        self._stack.push_async_callback(_end, working)
        if begins:
            jobs.begin_jobs()
        return Scheduler(jobs, mortal, dispatch, working, history)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        yield Site(folder, stack)


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,), timeout=1.0)
