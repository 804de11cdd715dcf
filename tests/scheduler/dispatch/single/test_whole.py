"""Statements that run whole: where, how often, and what may not be done twice."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core import errors
from caraway_core.concurrency.backoff import Delays
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName, new_query_id
from caraway_core.process import write_marks
from caraway_core.protocols import storing
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, StoreOrder
from caraway_core.statements import Statement
from caraway_core.statements.definitions import TableDefinition
from caraway_core.statements.questions import CommitQuestion
from caraway_core.tables import Keys, LookupColumns, RemoteTable, ResultPlace, StoredTable
from caraway_engine.sharing import dealing
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.single.lost_writes import LostWrites
from caraway_scheduler.dispatch.single.whole import WholeRunner
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.stored import parted
from tests.kit.stream_double import StreamDouble

E1, E2, E3 = (ExecutorId(f"e{number}") for number in (1, 2, 3))
Q = QueryId("q")
BATCH = pa.record_batch({"n": pa.array([1, 2], pa.int64())})
SELECT = Statement("SELECT 1", {})
NO_MARKS = errors.ExecutionError("commits of the table have no mark")
ORDER = StoreOrder(ResultPlace("file", "/results"), "k")
NOTES = TableName("notes")
ROWS = pa.table({"id": range(1000), "v": [n * 2 for n in range(1000)], "g": [7, 8] * 500})
KEYS = Keys(("id",), indexes=(LookupColumns(("g",)),))
T = TableName("t")
EXECUTORS = tuple(ExecutorId(f"e{number}") for number in (1, 2, 3))


def lost(executor_id: ExecutorId) -> errors.ExecutorLostError:
    return errors.ExecutorLostError(executor_id, "it is gone")


class Stream(StreamDouble):
    reads_only_catalog = True

    def __init__(
        self,
        *steps: pa.RecordBatch | BaseException,
        written: TableName | None = None,
        schema: pa.Schema = BATCH.schema,
    ):
        self.schema = next((s.schema for s in steps if isinstance(s, pa.RecordBatch)), schema)
        self.written = written
        self._steps = iter(steps)

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        step = next(self._steps, None)
        if step is None:
            raise StopAsyncIteration
        if isinstance(step, BaseException):
            raise step
        return step

    async def aclose(self) -> None:
        return


@dataclass
class Site:
    """A runner over executors whose answers a test gives."""

    ready: list[ExecutorId] = field(default_factory=lambda: [E1, E2, E3])
    answers: list[Any] = field(default_factory=list)
    asked: list[tuple[ExecutorId, Statement]] = field(default_factory=list)
    gone: list[ExecutorId] = field(default_factory=list)
    suspected: list[ExecutorId] = field(default_factory=list)
    ran: list[FinishedTask] = field(default_factory=list)
    commit: int | Exception | None = NO_MARKS
    defines: TableDefinition | None = None

    def __post_init__(self) -> None:
        def is_lost(executor_id: ExecutorId, _cause: str) -> None:
            self.gone.append(executor_id)
            self.ready = [each for each in self.ready if each != executor_id]

        async def on_loss(_: QueryId, executor_id: ExecutorId) -> None:
            self.suspected.append(executor_id)

        async def execute(
            executor_id: ExecutorId, _query_id: QueryId, statement: Statement, _origin: str
        ) -> Any:
            self.asked.append((executor_id, statement))
            answer = self.answers.pop(0) if self.answers else Stream(BATCH)
            if answer == "lost":
                raise lost(executor_id)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        async def find(ready: Any) -> ExecutorId:
            return E2

        membership: Any = SimpleNamespace(
            ready=lambda: [SimpleNamespace(executor_id=each) for each in self.ready], lost=is_lost
        )
        fleet: Any = SimpleNamespace(execute=execute)
        owner: Any = SimpleNamespace(find=find)
        reports = WorkReports(DispatchTallies(), self.ran.append, is_lost, on_loss)
        lost_writes = LostWrites(self._look)
        self.runner = WholeRunner(fleet, membership, "here", reports, owner, lost_writes)

    async def _look(self, question: CommitQuestion) -> int | None:
        """Return what is known of the commit of the last statement that was sent."""
        assert question.statement.defines == self.defines
        assert question.statement.mark == self.asked[-1][1].mark != ""
        if isinstance(self.commit, Exception):
            raise self.commit
        return self.commit


async def read(stream: Any) -> list[pa.RecordBatch]:
    return [batch async for batch in stream]


async def test_statements_go_where_the_fewest_run_and_count_until_they_are_read() -> None:
    site = Site()
    streams = [await site.runner.anywhere(Q, SELECT, None) for _ in range(6)]
    assert Counter(executor_id for executor_id, _ in site.asked) == {E1: 2, E2: 2, E3: 2}
    assert site.ran == []
    busy = site.asked[0][0]
    for stream, (executor_id, _) in zip(streams, site.asked, strict=True):
        if executor_id == busy:
            assert await read(stream) == [BATCH]
    assert [(each.executor_id, each.rows) for each in site.ran] == [(busy, 2)] * 2
    assert site.runner.idlest([E3, E2, E1]) == busy


@pytest.mark.parametrize("count", [1, ATTEMPTS - 1])
async def test_statement_that_reads_is_run_again_elsewhere(count: int) -> None:
    site = Site(answers=["lost"] * count)
    assert await read(await site.runner.anywhere(Q, SELECT, None)) == [BATCH]
    assert len({executor_id for executor_id, _ in site.asked}) == count + 1
    assert site.gone == site.suspected == [each for each, _ in site.asked[:-1]]


async def test_statement_that_is_lost_too_often_says_so() -> None:
    site = Site(ready=[E1, E2, E3, ExecutorId("e4")], answers=["lost"] * 9)
    with pytest.raises(errors.ExecutionError, match="run the statement again"):
        await site.runner.anywhere(Q, SELECT, None)
    assert len(site.asked) == ATTEMPTS
    assert len(site.ran) == ATTEMPTS, "each attempt gave its place back"


async def test_statement_that_writes_is_not_run_again_after_a_loss() -> None:
    site = Site(answers=["lost"])
    with pytest.raises(errors.ExecutionError):
        await site.runner.anywhere(Q, SELECT, NOTES)
    assert len(site.asked) == 1


@pytest.mark.parametrize("written", [None, NOTES])
@pytest.mark.parametrize(
    "refusal",
    [errors.ShuttingDownError("it drains"), errors.CatalogMovedError(CatalogVersion(1))],
    ids=lambda each: type(each).__name__,
)
async def test_refusal_before_the_work_sends_any_statement_elsewhere(
    refusal: errors.CarawayError, written: TableName | None
) -> None:
    site = Site(answers=[refusal])
    assert await read(await site.runner.anywhere(Q, SELECT, written)) == [BATCH]
    assert len({executor_id for executor_id, _ in site.asked}) == 2
    assert site.gone == site.suspected == []


async def test_catalog_that_nobody_has_is_for_the_caller_to_plan_over() -> None:
    site = Site(ready=[E1], answers=[errors.CatalogMovedError(CatalogVersion(1))])
    with pytest.raises(errors.CatalogMovedError):
        await site.runner.anywhere(Q, SELECT, None)


@pytest.mark.parametrize("ready", [[], [E1]])
async def test_nobody_who_may_work_is_an_overload(ready: list[ExecutorId]) -> None:
    site = Site(ready=ready, answers=[errors.ShuttingDownError("it drains")])
    with pytest.raises(errors.OverloadedError):
        await site.runner.anywhere(Q, SELECT, None)


@pytest.mark.parametrize(("written", "has_warning"), [(None, False), (NOTES, True)])
async def test_owner_that_is_lost_takes_its_rows_and_nothing_is_tried_again(
    written: TableName | None, has_warning: bool
) -> None:
    site = Site(answers=["lost"])
    with pytest.raises(errors.ExecutionError, match="memory:") as raised:
        await site.runner.at_owner(Q, SELECT, written)
    assert [executor_id for executor_id, _ in site.asked] == [E2]
    assert ("may or may not have written" in raised.value.message) == has_warning


COUNTED = pa.record_batch([pa.array([7], pa.uint64())], pa.schema([("count", pa.uint64())]))
TABLE = TableDefinition(NOTES, RemoteTable(BATCH.schema, "r", ("notes",), (), {}))
LOSSES = ("before its answer", "while it is read")


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_marks, "_DELAYS", Delays(0.0, 0.0))


def write(**options: Any) -> Statement:
    return Statement("INSERT", {}, **options)


@pytest.mark.parametrize("run", [WholeRunner.anywhere, WholeRunner.at_owner])
@pytest.mark.parametrize("when", LOSSES)
@pytest.mark.parametrize("defines", [None, TABLE])
async def test_a_commit_that_is_there_is_the_answer(
    run: Any, when: str, defines: TableDefinition | None
) -> None:
    site = Site(answers=answers_of(when), commit=7, defines=defines)
    stream = await run(site.runner, Q, write(defines=defines), NOTES)
    assert (stream.written, stream.schema.types) == (NOTES, [pa.uint64()])
    (batch,) = await read(stream)
    assert batch.column(0).to_pylist() == [7]
    assert len(site.gone) == len(site.asked) == len(site.ran) == 1


def answers_of(when: str) -> list[Any]:
    is_read = when == "while it is read"
    return [Stream(lost(E1), written=NOTES, schema=COUNTED.schema) if is_read else "lost"]


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("when", LOSSES)
@pytest.mark.parametrize(
    ("commit", "says"),
    [
        (None, "no row was written so far, but the executor may still commit"),
        (errors.ExecutionError("away"), "may or may not have"),
    ],
)
async def test_a_write_without_a_commit_says_what_is_known(
    commit: Any, says: str, when: str
) -> None:
    site = Site(answers=answers_of(when), commit=commit)
    with pytest.raises(errors.ExecutionError, match=says) as caught:
        await read(await site.runner.anywhere(Q, write(), NOTES))
    assert "it is gone" in caught.value.message
    assert len(site.asked) == len(site.ran) == 1


async def test_a_count_that_was_read_is_not_looked_up() -> None:
    site = Site(answers=[Stream(COUNTED, lost(E1), written=NOTES)], commit=9)
    assert await read(await site.runner.anywhere(Q, write(), NOTES)) == [COUNTED]


async def test_each_write_has_a_mark_of_its_own_and_reads_have_none() -> None:
    site = Site(answers=[errors.ShuttingDownError("it drains")])
    for written in (NOTES, NOTES, None):
        await read(await site.runner.anywhere(Q, write(), written))
    marks = [statement.mark for _, statement in site.asked]
    assert marks[0] == marks[1] != marks[2] != marks[3] == ""


async def test_answer_that_breaks_off_is_not_repeated_for_a_reader_who_saw_rows() -> None:
    site = Site(answers=[Stream(BATCH, lost(E1))])
    stream = await site.runner.anywhere(Q, SELECT, None)
    assert await anext(aiter(stream)) == BATCH
    with pytest.raises(errors.AnswerCutError):
        await anext(aiter(stream))
    assert site.gone == [E1] and len(site.asked) == len(site.ran) == 1


def words(count: int) -> pa.RecordBatch:
    schema = storing.stored_schema(BATCH.schema)
    return storing.pack([StoredChunk(0, 0, ChunkInfo(0, count, 10 * count, "x"))], schema)


async def test_stored_answer_is_made_again_after_a_loss_under_an_attempt_of_its_own() -> None:
    site = Site(answers=[Stream(words(1), lost(E1)), Stream(words(1))])
    statement = Statement("SELECT 1", {}, store=ORDER)
    await read(await site.runner.anywhere(Q, statement, None))
    orders = [asked.store for _, asked in site.asked]
    assert [order.attempt for order in orders if order is not None] == [0, 1]


async def test_stored_answer_of_a_statement_that_writes_is_not_made_again() -> None:
    site = Site(answers=[Stream(words(1), lost(E1), written=NOTES)])
    statement = Statement("INSERT", {}, store=ORDER)
    with pytest.raises(errors.ExecutionError, match="'notes' may or may not have been written"):
        await read(await site.runner.anywhere(Q, statement, NOTES))
    assert len(site.asked) == 1


async def test_stored_answer_that_is_too_large_is_refused() -> None:
    order = StoreOrder(ORDER.place, "k", most_bytes=15)
    site = Site(answers=[Stream(words(1), words(1))])
    with pytest.raises(errors.ResultTooLargeError):
        await read(await site.runner.anywhere(Q, Statement("SELECT 1", {}, store=order), None))


async def test_failure_of_a_statement_is_its_own_and_frees_the_place() -> None:
    site = Site(answers=[errors.InvalidQueryError("no such column")])
    with pytest.raises(errors.InvalidQueryError):
        await site.runner.anywhere(Q, SELECT, None)
    assert len(site.asked) == len(site.ran) == 1 and site.suspected == []


async def table(folder: Path) -> StoredTable:
    return await parted(folder / "chunks", ROWS, "bucket(16, id)", keys=KEYS)


class Calls:
    """Counts the statements and tasks that executors receive."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.whole: Counter[ExecutorId] = Counter()
        self.planned = 0
        execute = cluster.fleet.execute

        async def counted(
            executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
        ) -> BatchStream:
            self.whole[executor_id] += 1
            return await execute(executor_id, query_id, statement, catalog)

        cluster.fleet.execute = counted  # type: ignore[method-assign]
        cluster.tallies.planned = self._plan  # type: ignore[method-assign]

    def _plan(self, duration_ms: float) -> None:
        self.planned += 1


async def test_a_lookup_is_one_call_to_the_owner(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        assert await cluster.dispatch.load(T, spec) == 1000
        for chunk in (tmp_path / "chunks").rglob("*.arrow"):
            chunk.unlink()
        holders = dealing.holders(spec, EXECUTORS)
        calls = Calls(cluster)
        for number in range(0, 1000, 37):
            found = await cluster.execute(f"SELECT v, id FROM t WHERE id = {number}")
            assert found.to_pylist() == [{"v": number * 2, "id": number}]
        assert sum(calls.whole.values()) == 28 and calls.planned == 0
        assert calls.whole.keys() == {each for ids in holders.values() for each in ids}
        assert (await cluster.execute("SELECT v FROM t WHERE id = 5000")).num_rows == 0


async def test_what_no_single_executor_has_runs_in_stages(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, {"t": await table(tmp_path)}, executors=3) as cluster:
        calls = Calls(cluster)
        many = ", ".join(map(str, range(20)))
        found = await cluster.execute(f"SELECT id FROM t WHERE id IN ({many})")
        assert sorted(row["id"] for row in found.to_pylist()) == list(range(20))
        assert (await cluster.execute("SELECT id FROM t WHERE g = 7")).num_rows == 500
        assert not calls.whole and calls.planned == 2


async def test_a_small_table_is_looked_up_on_any_executor(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, policy=Policy()) as cluster:
        calls = Calls(cluster)
        for sql in ("SELECT v FROM t WHERE id = 7", "SELECT v FROM t WHERE g = 7 LIMIT 1"):
            assert (await cluster.execute(sql)).num_rows == 1
        assert sum(calls.whole.values()) == 2 and calls.planned == 0


async def test_a_lookup_survives_the_loss_of_its_owner(tmp_path: Path) -> None:
    spec = await table(tmp_path)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        lost = EXECUTORS[1]
        await cluster.fleet.lose(lost)
        for number in range(0, 1000, 53):
            statement = Statement("SELECT v FROM t WHERE id = $1", {"1": number})
            stream = await cluster.dispatch.execute(new_query_id(), statement)
            assert [row async for batch in stream for row in batch.to_pylist()] == [
                {"v": number * 2}
            ]
