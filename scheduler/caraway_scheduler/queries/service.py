"""Runs a statement from request to rows: cache, admission, dispatch, time limit and history."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import pyarrow as pa

from caraway_core.errors import ExecutionError, ShuttingDownError
from caraway_core.ids import CatalogVersion, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.statements import Statement
from caraway_core.statements.questions import ParameterQuestion, SqlQuestion
from caraway_scheduler.queries import active, texts, time_limits
from caraway_scheduler.queries.active import ActiveQueries, ActiveQuery
from caraway_scheduler.queries.admission import Admission
from caraway_scheduler.queries.answers import CachedRows, CacheStatus, LiveRows, StatementAnswer
from caraway_scheduler.queries.cache import CacheKey, ResultsCache
from caraway_scheduler.queries.recording import StatementRecords
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.time_limits import TimeLimits
from caraway_serving import spans
from caraway_serving.access import Principal

_Result = TypeVar("_Result")
_LONGEST_LOGGED = 1_000
logger = logging.getLogger(__name__)
CatalogView = Callable[[], tuple[CatalogVersion, frozenset[TableName]]]
"""Returns the catalog version for new statements, and the tables that may be written."""


class FreshReads(Protocol):
    """Ensures that statements read what other schedulers have acknowledged."""

    def must_ask(self, sql: str) -> bool:
        """Return whether another scheduler may have changed the data of a statement."""
        ...

    def may_keep(self, sql: str) -> bool:
        """Return whether the answer stays valid until the local catalog changes."""
        ...

    async def caught_up(self, sql: str) -> None:
        """Wait until a statement would read everything that was acknowledged before now.

        Raises:
            UnavailableError: the state store or the readers of a dataset are not ready in time.
            StateAwayError: the state store reports that it is unavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class StatementLimits:
    """How long a statement may run, without a limit if None, and how long its text may be."""

    timeout_s: float | None = None
    most_sql_bytes: int = texts.MOST_BYTES


class QueryService:
    """Runs statements; each process has one."""

    def __init__(
        self,
        dispatch: Dispatch,
        catalog: CatalogView,
        admission: Admission,
        cache: ResultsCache | None,
        records: StatementRecords,
        limits: StatementLimits,
        newest: FreshReads | None = None,
    ) -> None:
        self.active = ActiveQueries()
        self.admission = admission
        self.cache = cache
        self.is_stopping = False
        self.catalog = catalog
        self._dispatch = dispatch
        self._newest = newest
        self._most_sql_bytes = limits.most_sql_bytes
        self._records = records
        self._timeouts = TimeLimits(limits.timeout_s)
        self._own_running = admission.max_running

    def recall(self, request: QueryRequest) -> StatementAnswer | None:
        """Answer from the cache if possible; never waits.

        Raises:
            InvalidQueryError: the statement is empty or too long.
            ShuttingDownError: the process accepts no more work.
        """
        texts.check(request.sql, self._most_sql_bytes)
        if self._newest is not None and self._newest.must_ask(request.sql):
            return None
        return self._recalled(request)

    async def start(self, request: QueryRequest) -> StatementAnswer:
        """Start a statement and wait for its first batch, so that most errors are raised here.

        Raises:
            QueryError: the statement is invalid or failed.
            ShuttingDownError: the process accepts no more work.
        """
        texts.check(request.sql, self._most_sql_bytes)
        statement, key = self._statement(request)
        if self._newest is not None and self._is_cached(request, key):
            # Other schedulers may have changed the data that it reads.
            await self._newest.caught_up(request.sql)
            if (answer := self._recalled(request)) is not None:
                return answer
            statement, key = self._statement(request)
        since = self.cache.clears if self.cache is not None else 0
        spans.current.set(replace(request.span, principal=request.principal.id))
        run = _Run(self, request, self._timeouts, self._records)
        self.active.add(run.query)
        try:
            with run.query.step():
                await run.enter()
                stream = await self._dispatch.execute(run.query.query_id, statement)
                rows = LiveRows(stream, run.query, run.finish)
                if request.takes_plain:
                    stream.traits.takes_plain = True
                    stream.traits.takes_uncut = request.takes_uncut
                run.query.release = rows.release
                if rows.offered is None:
                    await rows.prefetch()
            waited_ms = time.time_ns() / 1e6 - run.query.started_at_ms
            self._records.began(request, waited_ms)
        except BaseException as exc:
            reported = run.query.judged(exc)
            run.finish(reported)
            if reported is not exc:
                raise reported from exc
            raise
        status = self._watch_for_cache(request, stream, rows, key, since)
        return StatementAnswer(run.query.query_id, rows, status)

    async def parameters(self, request: QueryRequest) -> Mapping[str, pa.DataType]:
        """Return the types of a statement's parameters; null where none can be inferred.

        Raises:
            QueryError: it cannot be planned without values, or not in time.
            ShuttingDownError: the process accepts no more work.
        """
        texts.check(request.sql, self._most_sql_bytes)
        statement, _ = self._statement(request)

        async def asked() -> Mapping[str, pa.DataType]:
            return await self._dispatch.ask(ParameterQuestion(statement))

        return await self.limited(request.sql, request.principal, asked, request.protocol)

    async def sql_of(self, request: QueryRequest, plan: bytes) -> str:
        """Write a Substrait plan as SQL; the text of the request only names the plan.

        Raises:
            QueryError: it is too large, or no SQL that means the same can be written.
            ShuttingDownError: the process accepts no more work.
        """
        texts.check_plan(plan, self._most_sql_bytes)
        statement, _ = self._statement(request)

        async def asked() -> str:
            return await self._dispatch.ask(SqlQuestion(statement, plan))

        return await self.limited(request.sql, request.principal, asked, request.protocol)

    async def limited(
        self,
        what: str,
        principal: Principal,
        work: Callable[[], Awaitable[_Result]],
        protocol: active.Protocol = "http",
    ) -> _Result:
        """Do work of several statements within the limits of one: a slot, a time limit, a cancel.

        `what` describes it in the list of running statements.

        Raises:
            QueryError: the work failed, was stopped, or found no slot.
            ShuttingDownError: the process accepts no more work.
        """
        if self.is_stopping:
            raise ShuttingDownError("Runtime is shutting down")
        query = ActiveQuery(
            query_id=new_query_id(),
            protocol=protocol,
            sql=what,
            principal=principal.id,
            started_at_ms=time.time_ns() // 1_000_000,
            timeout_s=self._timeouts.effective_s,
            timeout_remedy=self._timeouts.remedy,
        )
        self.active.add(query)
        try:
            with query.step(), self._deadline(query):
                await self.admission.enter(principal.id)
                try:
                    return await work()
                finally:
                    self.admission.leave(principal.id)
        finally:
            self.active.remove(query)

    @contextmanager
    def _deadline(self, query: ActiveQuery) -> Iterator[None]:
        if query.timeout_s is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(query.timeout_s, query.stop, "timeout")
        try:
            yield
        finally:
            timer.cancel()

    async def caught_up(self, sql: str) -> None:
        """Wait until what a statement reads is what was acknowledged by any scheduler.

        Raises:
            UnavailableError: the state store does not answer in time.
            StateAwayError: the state store reports that it is unavailable.
        """
        if self._newest is not None:
            await self._newest.caught_up(sql)

    def may_keep(self, sql: str) -> bool:
        """Return whether the answer of a statement stays valid until the catalog changes here."""
        return self._newest is None or self._newest.may_keep(sql)

    def bound(self, timeout_s: float | None, max_running: int | None) -> None:
        """Apply limits from outside the manifest; the lower of both limits is in force."""
        self._timeouts.bound_s = timeout_s
        self.admission.bound(time_limits.lower(self._own_running, max_running))

    def invalidate(self) -> None:
        """Drop cached answers because their data may have changed."""
        if self.cache is not None:
            self.cache.clear()

    async def stop(self, timeout_s: float) -> None:
        """Accept no more work, let running statements finish, and cancel the rest after the
        timeout.
        """
        self.is_stopping = True
        try:
            async with asyncio.timeout(timeout_s):
                await self.active.wait_idle()
        except TimeoutError:
            self.active.stop_all("shutdown")

    def _recalled(self, request: QueryRequest) -> StatementAnswer | None:
        if self.cache is None or request.cache_control == "bypass":
            return None
        _, key = self._statement(request)
        if key is None:
            return None
        cached = self.cache.get(key)
        if cached is None:
            return None
        rows = CachedRows(cached, takes_plain=request.takes_plain)
        return self._hit(request, rows)

    def _is_cached(self, request: QueryRequest, key: CacheKey | None) -> bool:
        if self.cache is None or key is None or request.cache_control == "bypass":
            return False
        return key in self.cache

    def _statement(self, request: QueryRequest) -> tuple[Statement, CacheKey | None]:
        if self.is_stopping:
            raise ShuttingDownError("Runtime is shutting down")
        version, writable = self.catalog()
        may_write = request.may_write and request.principal.may_write
        statement = Statement(
            sql=request.sql,
            parameters=request.parameters,  # type: ignore[arg-type] # binding checks them
            may_write=may_write,
            writable=writable if may_write else frozenset(),
            viewer=request.principal.viewer,
            sources=frozenset(),
            given=request.given,
            readable=request.readable,
            offer=request.offer,
            trace_id=request.span.trace_id,
        )
        is_limited = request.given is not None or request.readable is not None
        if self.cache is None or is_limited:
            return statement, None
        return statement, ResultsCache.key(request.principal.id, version, statement)

    def _hit(self, request: QueryRequest, rows: CachedRows) -> StatementAnswer:
        now = time.time_ns()
        answer = StatementAnswer(new_query_id(), rows, "HIT")
        self._records.ended(request, now, now, None, rows_sent=rows.row_count, cache="HIT")
        return answer

    def _watch_for_cache(
        self,
        request: QueryRequest,
        stream: BatchStream,
        rows: LiveRows,
        key: CacheKey | None,
        since: int,
    ) -> CacheStatus | None:
        if stream.written is not None:
            # Invalidate however it ends: rows may have been written before the client disconnected.
            rows.on_end = self.invalidate
            return None
        if key is None or self.cache is None or not stream.reads_only_catalog:
            return None
        if self._newest is not None and not self._newest.may_keep(request.sql):
            return None
        cache, schema = self.cache, rows.schema
        rows.keep(
            cache.largest_answer_bytes, lambda batches: cache.put(key, schema, batches, since)
        )
        return "BYPASS" if request.cache_control == "bypass" else "MISS"


class _Run:
    """The slot, deadline and history record of one statement; finished exactly once."""

    def __init__(
        self,
        service: QueryService,
        request: QueryRequest,
        timeouts: TimeLimits,
        records: StatementRecords,
    ) -> None:
        self._service = service
        self._records = records
        self._request = request
        self._start_ns = time.time_ns()
        self._has_place = False
        self._is_finished = False
        self.query = ActiveQuery(
            query_id=new_query_id(),
            protocol=request.protocol,
            sql=request.sql,
            principal=request.principal.id,
            started_at_ms=self._start_ns // 1_000_000,
            trace_id=request.span.trace_id,
            timeout_s=timeouts.effective_s,
            timeout_remedy=timeouts.remedy,
        )
        self._deadline: asyncio.TimerHandle | None = None

    async def enter(self) -> None:
        await self._service.admission.enter(self.query.principal)
        self._has_place = True
        if timeout_s := self.query.timeout_s:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(timeout_s, self.query.stop, "timeout")

    def finish(
        self,
        error: BaseException | None,
        rows_sent: int = 0,
        sample: pa.RecordBatch | None = None,
    ) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        if self._deadline:
            self._deadline.cancel()
        if self._has_place:
            self._service.admission.leave(self.query.principal)
        self._service.active.remove(self.query)
        if isinstance(error, ExecutionError):
            ids = {"query_id": self.query.query_id, "trace_id": self._request.span.trace_id}
            sql = self._request.sql[:_LONGEST_LOGGED]
            logger.error("query failed", extra={**ids, "cause": error.message, "sql": sql})
        self._records.ended(self._request, self._start_ns, time.time_ns(), error, rows_sent, sample)
