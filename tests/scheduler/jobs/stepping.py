"""Parts of the jobs of one scheduler on a loop whose time a test moves; no threads, no engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols import storing
from caraway_core.protocols.dispatch import StatementProgress
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.state import StateEntry
from caraway_core.protocols.storing import StoredChunk
from caraway_core.statements import Statement
from caraway_scheduler.jobs.committing import Committer
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica
from tests.kit.interleaving import SteppedLoop, SteppedResults, SteppedStore, run
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema({"n": pa.int64()})
WORDS = storing.stored_schema(SCHEMA)
RETENTION_S, KEPT_S = 3_600.0, 7_200.0


class Store(SteppedStore):
    """A state store that can be away; `puts` counts the writes that were tried."""

    def __init__(self, loop: SteppedLoop) -> None:
        super().__init__(loop)
        self.away: CarawayError | None = None
        self.puts: list[str] = []
        self.ttls: dict[str, float | None] = {}

    async def get(self, key: str) -> StateEntry | None:
        self._check()
        return await super().get(key)

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        self._check()
        return await super().scan(prefix)

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        self.puts.append(key)
        self._check()
        self.ttls[key] = ttl_s
        return await super().compare_and_set(key, value, expected=expected, ttl_s=ttl_s)

    def _check(self) -> None:
        if self.away is not None:
            raise self.away


@dataclass
class Answer:
    """The result of one execution: words of chunks that are stored, then perhaps a failure."""

    counts: tuple[int, ...] = ()
    raised: BaseException | None = None
    waits: asyncio.Event | None = None
    written: TableName | None = None
    attempts: tuple[int, ...] = ()
    """The attempt that each chunk is of; all are of the first where nothing is said."""


class Words(StreamDouble):
    """A stream of words about chunks."""

    schema = WORDS
    reads_only_catalog = False

    def __init__(self, world: "World", key: str, answer: Answer) -> None:
        self._world = world
        self._key = key
        self._answer = answer
        self.written = answer.written
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        attempts = self._answer.attempts or (0,) * len(self._answer.counts)
        for index, (count, attempt) in enumerate(zip(self._answer.counts, attempts, strict=True)):
            rows = pa.record_batch({"n": list(range(count))}, schema=SCHEMA)
            info = await self._world.results.write_chunk(self._key, index, SCHEMA, [rows])
            yield storing.pack([StoredChunk(0, attempt, info)], WORDS)
        if self._answer.waits is not None:
            await self._answer.waits.wait()
        if self._answer.raised is not None:
            raise self._answer.raised

    async def aclose(self) -> None:
        self.is_closed = True


class Engine:
    """Dispatch of a script: the n-th execution gives the n-th answer, the last one again."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.script: list[Answer | BaseException] = [Answer((3, 2))]
        self.executed: list[Statement] = []
        self.streams: list[Words] = []
        self.told: StatementProgress | None = None

    async def execute(self, query_id: QueryId, statement: Statement) -> Words:
        await self._world.loop.step()
        answer = self.script[min(len(self.executed), len(self.script) - 1)]
        self.executed.append(statement)
        if isinstance(answer, BaseException):
            raise answer
        assert statement.store is not None
        stream = Words(self._world, statement.store.key, answer)
        self.streams.append(stream)
        return stream

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        return self.told

    def executors(self) -> tuple[Any, ...]:
        return ()


class World:
    """One state store, one result store, and an engine of a script."""

    def __init__(self, loop: SteppedLoop) -> None:
        self.loop = loop
        self.store = Store(loop)
        self.results = SteppedResults(loop)
        self.records = JobRecords(self.store)
        self.seen: list[StoredJob] = []
        self.committer = Committer(self.records, cast(Replica, self))
        self.engine = Engine(self)

    def saw(self, held: StoredJob) -> None:
        self.seen.append(held)

    async def keep(self, job: Job) -> StoredJob:
        """Write a new job, as the job service does."""
        return await self.records.create(job)

    async def held(self, job: Job) -> StoredJob:
        """Return the job as it is in the store."""
        held = await self.records.get(job.principal, job.job_id)
        assert held is not None
        return held

    async def standing(self, job: Job) -> Job:
        return (await self.held(job)).job

    async def chunk(self, key: str, index: int = 0) -> ChunkInfo:
        return await self.results.write_chunk(
            key, index, SCHEMA, [pa.record_batch({"n": [1]}, schema=SCHEMA)]
        )

    async def settled(self, look: Callable[[], object]) -> None:
        """Let others go on until the answer is true."""
        for _ in range(2_000):
            if look():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it never was")


def play(
    work: Callable[[World], Coroutine[Any, Any, None]],
    choose: Callable[[int], int] = lambda _choices: 0,
) -> None:
    """Run a test of such parts; a timer comes when no other task can go on."""
    run(lambda loop: work(World(loop)), choose, steps_take_time=False)
