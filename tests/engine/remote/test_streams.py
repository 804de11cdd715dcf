import asyncio
import gc
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_core.work import SourceQuery
from caraway_engine.execution.streams import EngineStream, StartedPlan
from caraway_engine.remote import answers, streams
from caraway_engine.sessions.sessions import Session
from caraway_engine.statements.statements import Effect
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, rows, session

SCHEMA = pa.schema([("id", pa.int64())])
TABLE = RemoteTable(SCHEMA, "fake", ("t",), (RemoteColumn("id", pa.int64(), True),), {})


class Fake:
    """A reader whose statements wait, fail or give rows."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.closed = threading.Event()
        self.error: Exception | None = None
        self.statements: list[str] = []

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "Fake":
        self.statements.append(sql)
        return self

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.goes_on.wait()
        if self.error is not None:
            raise self.error
        if not self.closed.is_set():
            yield pa.record_batch({"id": pa.array([1, 2, 3], pa.int64())})

    def close(self) -> None:
        self.closed.set()
        self.goes_on.set()


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    answers.use("fake", made)
    yield made
    made.goes_on.set()


@pytest.fixture
def over(fake: Fake) -> Session:
    return session({"t": TABLE, "m": memory(id=[2, 3])})


STATEMENTS = [
    "SELECT id FROM t",
    "SELECT t.id FROM t JOIN m ON m.id = t.id",
    "SELECT count(*) OVER () AS n FROM t",
]


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_statement_that_is_left_stops_its_database(
    over: Session, fake: Fake, sql: str
) -> None:
    asking = asyncio.create_task(rows(over, sql))
    await eventually(lambda: _is_asked(fake), "the database is asked")
    # Other statements go on meanwhile.
    assert len(await rows(over, "SELECT id FROM m")) == 2
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await eventually(lambda: _is_closed(fake), "the statement is stopped")


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_error_of_a_database_is_that_of_the_statement(
    over: Session, fake: Fake, sql: str
) -> None:
    fake.error = ExecutionError("the database is away")
    fake.goes_on.set()
    with pytest.raises(ExecutionError, match="the database is away"):
        await rows(over, sql)


async def test_statements_end_also_while_every_thread_waits_for_its_database(fake: Fake) -> None:
    """The threads that stopped statements were those that waited for them."""
    waiting = [_Waiting() for _ in range(2 * streams._THREADS)]
    loop = asyncio.get_running_loop()
    reading = [loop.run_in_executor(streams.pool, each.read) for each in waiting]
    started = waiting[: streams._THREADS]
    for each in started:
        assert await asyncio.to_thread(each.begun.wait, 60)
    streams.closer.start()
    for each in waiting:
        streams.closer.give(each)
    async with asyncio.timeout(60):
        await asyncio.gather(*reading)


class _Waiting:
    """A read that ends when it is closed, and not before."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._closed = threading.Event()

    def read(self) -> None:
        self.begun.set()
        self._closed.wait()

    def close(self) -> None:
        self._closed.set()


async def test_garbage_collector_may_close_streams_at_any_place() -> None:
    """It ran inside of the pool's own lock, which closing by that pool waited for without end."""
    rows = streams.AnswerStream(answers.AnswerReading(SourceQuery(TABLE, "SELECT", SCHEMA)), SCHEMA)
    stream = EngineStream(StartedPlan(rows, SCHEMA, Effect(None, reads_only_catalog=True)), _raise)
    knot: list[object] = [stream]
    knot.append(knot)
    del stream, knot
    lock = streams.pool._shutdown_lock
    with lock:
        await asyncio.wait_for(asyncio.to_thread(gc.collect), 60)


def _raise(exc: BaseException, *, planning: bool = False) -> QueryError:
    raise exc


async def _is_asked(fake: Fake) -> bool:
    return bool(fake.statements)


async def _is_closed(fake: Fake) -> bool:
    return fake.closed.is_set()
