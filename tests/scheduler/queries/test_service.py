"""One statement from request to rows: its cache, limits, counters and record."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.errors import (
    ExecutionError,
    OverloadedError,
    QueryCancelledError,
    QueryTimeoutError,
    ShuttingDownError,
    UnavailableError,
)
from caraway_core.ids import CatalogVersion, NodeId, PrincipalId, QueryId, TableName
from caraway_core.statements import Statement
from caraway_core.statements.questions import ParameterQuestion
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_scheduler.queries.admission import Admission
from caraway_scheduler.queries.answers import StatementAnswer
from caraway_scheduler.queries.cache import ResultsCache
from caraway_scheduler.queries.recording import StatementRecords
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService, StatementLimits
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS, Principal
from caraway_serving.tallies import ApiTallies
from tests.kit.deadlines import eventually
from tests.kit.stream_double import StreamDouble

ROWS = pa.record_batch({"n": [1, 2, 3]})
T = TableName("t")
READER = Principal(PrincipalId("reader"), may_write=False)


@dataclass
class Stream(StreamDouble):
    """Three rows; a long one then waits until it is closed."""

    is_long: bool = False
    written: TableName | None = None
    reads_only_catalog: bool = True
    fails: Exception | None = None
    schema: pa.Schema = ROWS.schema

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        yield ROWS
        if self.fails is not None:
            raise self.fails
        if self.is_long:
            await asyncio.Event().wait()

    async def aclose(self) -> None: ...


@dataclass
class FakeDispatch:
    """Notes the statements, and answers each with a new stream."""

    make: Callable[[], Stream] = Stream
    fails: Exception | None = None
    statements: list[Statement] = field(default_factory=list)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, question: ParameterQuestion) -> dict[str, pa.DataType]:
        self.statements.append(question.statement)
        await self.may_begin.wait()
        return {"1": pa.int64()}

    async def execute(self, _query_id: QueryId, statement: Statement) -> Stream:
        self.statements.append(statement)
        await self.may_begin.wait()
        if self.fails is not None:
            raise self.fails
        return self.make()


@dataclass
class Newest:
    """Another scheduler that may have changed the data."""

    asks: bool = False
    keeps: bool = True
    waits: list[str] = field(default_factory=list)
    fails: Exception | None = None

    def must_ask(self, _sql: str) -> bool:
        return self.asks

    def may_keep(self, _sql: str) -> bool:
        return self.keeps

    async def caught_up(self, sql: str) -> None:
        self.waits.append(sql)
        if self.fails is not None:
            raise self.fails


class Site:
    """A service over a fake dispatch, with one slot and one place in the queue."""

    def __init__(
        self, timeout_s: float | None = None, newest: Newest | None = None, slots: int = 1
    ) -> None:
        self.dispatch = FakeDispatch()
        self.dispatch.may_begin.set()
        self.tallies = ApiTallies()
        self.history = TaskHistory(HistorySettings(captures_output=True), NodeId("n"), lambda: 0)
        self.version = CatalogVersion(1)
        made: Any = self.dispatch
        self.service = QueryService(
            made,
            lambda: (self.version, frozenset({T})),
            Admission(slots, 1, 5),
            ResultsCache(CacheSettings(max_size_bytes=1 << 20, ttl_s=60), lambda: 0.0),
            StatementRecords(self.history, self.tallies),
            StatementLimits(timeout_s),
            newest,
        )

    async def read(self, sql: str = "SELECT n FROM t", **options: Any) -> StatementAnswer:
        answer = self.service.recall(request(sql, **options))
        answer = answer or await self.service.start(request(sql, **options))
        async for _ in answer.rows:
            pass
        return answer

    async def running(self, count: int) -> None:
        await eventually(
            lambda: asyncio.sleep(0, len(self.service.active) == count), f"{count} have begun"
        )

    def recorded(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.history.table(None).to_pylist()
        return rows


def request(sql: str, principal: Principal = ANONYMOUS, **options: Any) -> QueryRequest:
    return QueryRequest(sql, principal, spans.start(None), **options)


async def test_second_answer_comes_from_the_cache_until_the_data_changes() -> None:
    site = Site()
    assert [(await site.read()).cache_status for _ in range(3)] == ["MISS", "HIT", "HIT"]
    assert (await site.read(cache_control="bypass")).cache_status == "BYPASS"
    site.service.invalidate()
    assert (await site.read()).cache_status == "MISS"
    site.version = CatalogVersion(2)
    assert (await site.read()).cache_status == "MISS"
    assert len(site.dispatch.statements) == 4


@pytest.mark.parametrize("options", [{"parameters": {"1": 7}}, {"principal": READER}])
async def test_answers_of_other_requests_are_not_taken(options: dict[str, Any]) -> None:
    site = Site()
    await site.read()
    assert (await site.read(**options)).cache_status == "MISS"


async def test_answer_that_may_change_by_itself_or_is_limited_is_not_cached() -> None:
    site = Site()
    site.dispatch.make = lambda: Stream(reads_only_catalog=False)
    assert [(await site.read()).cache_status for _ in range(2)] == [None, None]
    site = Site(newest=Newest(keeps=False))
    assert [(await site.read()).cache_status for _ in range(2)] == [None, None]
    site = Site()
    limited: dict[str, Any] = {"readable": frozenset({T})}
    assert [(await site.read(**limited)).cache_status for _ in range(2)] == [None, None]


async def test_write_clears_the_cache_even_if_its_client_leaves() -> None:
    site = Site()
    await site.read()
    site.dispatch.make = lambda: Stream(written=T, is_long=True)
    answer = await site.service.start(request("INSERT INTO t VALUES (1)"))
    assert site.service.recall(request("SELECT n FROM t")) is not None
    answer.rows.close()
    await site.service.active.wait_idle()
    assert site.service.recall(request("SELECT n FROM t")) is None


async def test_key_that_may_only_read_is_given_no_tables_to_write() -> None:
    site = Site(slots=4)
    await site.read("INSERT INTO t VALUES (1)")
    await site.read("INSERT INTO t VALUES (2)", may_write=False)
    await site.read("INSERT INTO t VALUES (3)", principal=READER)
    told = [(each.may_write, each.writable) for each in site.dispatch.statements]
    assert told == [(True, frozenset({T})), (False, frozenset()), (False, frozenset())]


async def test_cached_answer_waits_for_what_others_acknowledged() -> None:
    newest = Newest()
    site = Site(newest=newest)
    await site.read()
    newest.asks = True
    assert (await site.read()).cache_status == "HIT"
    assert newest.waits == ["SELECT n FROM t"]
    newest.fails = UnavailableError("the state store does not respond")
    with pytest.raises(UnavailableError):
        await site.read()
    # Nothing is asked about an answer that is not cached.
    await site.read("SELECT 2")
    assert len(newest.waits) == 2


async def test_failure_of_the_engine_is_logged_with_its_statement(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Site()
    site.dispatch.make = lambda: Stream(fails=ExecutionError("it broke"), is_long=True)
    with pytest.raises(ExecutionError, match="it broke"):
        await site.read()
    (record,) = (each for each in caplog.records if each.getMessage() == "query failed")
    fields = vars(record)
    assert fields["cause"] == "it broke"
    assert fields["query_id"] and fields["trace_id"] == site.recorded()[-1]["trace_id"]


async def test_statement_that_fails_gives_its_slot_back_and_is_recorded() -> None:
    site = Site()
    site.dispatch.fails = ExecutionError("division by zero")
    for _ in range(3):
        with pytest.raises(ExecutionError, match="division by zero"):
            await site.read()
    site.dispatch.fails = None
    site.dispatch.make = lambda: Stream(fails=ExecutionError("it broke"), is_long=True)
    with pytest.raises(ExecutionError, match="it broke"):
        await site.read()
    site.dispatch.make = Stream
    assert (await site.read(user_agent="mine/1")).cache_status == "MISS"
    assert len(site.service.active) == 0
    *_, broken, last = site.recorded()
    assert broken["error_message"] == "it broke"
    assert last["error_message"] is None
    assert dict(last["labels"])["rows_produced"] == "3"
    assert dict(last["labels"])["user_agent"] == "mine/1"
    assert last["captured_output"] == '[{"n":1},{"n":2},{"n":3}]'
    assert site.tallies.query_failures[("http", "ExecutionError")] == 4
    assert site.tallies.query_executions[("http",)] == 5


async def test_statements_wait_for_a_slot_and_too_many_are_refused() -> None:
    site = Site()
    site.dispatch.may_begin.clear()
    first, second = (asyncio.create_task(site.read(f"SELECT {n}")) for n in range(2))
    await site.running(2)
    with pytest.raises(OverloadedError):
        await site.read("SELECT 3")
    assert len(site.dispatch.statements) == 1
    site.dispatch.may_begin.set()
    await asyncio.gather(first, second)
    assert len(site.dispatch.statements) == 2


async def test_time_limit_ends_a_statement_and_the_lower_one_holds() -> None:
    site = Site(timeout_s=3600)
    site.service.bound(0.01, None)
    site.dispatch.may_begin.clear()
    with pytest.raises(QueryTimeoutError):
        await site.read()
    assert len(site.service.active) == 0


async def test_work_of_several_statements_has_one_slot_and_can_be_cancelled() -> None:
    site = Site()
    assert await site.service.limited("search", ANONYMOUS, lambda: asyncio.sleep(0, 7)) == 7

    async def endless() -> None:
        await asyncio.Event().wait()

    working = asyncio.create_task(site.service.limited("search", ANONYMOUS, endless))
    await site.running(1)
    waiting = asyncio.create_task(site.read())
    await site.running(2)
    assert site.dispatch.statements == []
    site.service.active.stop_all("cancelled")
    with pytest.raises(QueryCancelledError):
        await working
    with pytest.raises(QueryCancelledError):
        await waiting
    assert (await site.read()).cache_status == "MISS"

    site.service.bound(0.01, None)
    with pytest.raises(QueryTimeoutError):
        await site.service.limited("search", ANONYMOUS, endless)
    assert len(site.service.active) == 0


async def test_types_of_parameters_have_the_limits_of_a_statement() -> None:
    site = Site(timeout_s=0.01)
    assert await site.service.parameters(request("SELECT $1")) == {"1": pa.int64()}
    site.dispatch.may_begin.clear()
    with pytest.raises(QueryTimeoutError):
        await site.service.parameters(request("SELECT $1"))
    assert len(site.service.active) == 0


async def test_stop_lets_statements_end_and_cancels_them_after_the_time() -> None:
    site = Site()
    site.dispatch.make = lambda: Stream(is_long=True)
    answer = await site.service.start(request("SELECT 1"))
    await site.service.stop(0.01)
    with pytest.raises(ShuttingDownError, match="shutting down"):
        async for _ in answer.rows:
            pass
    for refused in (
        site.read("SELECT 2"),
        site.service.limited("search", ANONYMOUS, lambda: asyncio.sleep(0)),
    ):
        with pytest.raises(ShuttingDownError):
            await refused
