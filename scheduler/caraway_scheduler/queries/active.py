"""Tracks the statements that are running, so that they can be listed and stopped."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    QueryCancelledError,
    QueryTimeoutError,
    ShuttingDownError,
)
from caraway_core.ids import PUBLIC, PrincipalId, QueryId

Protocol = Literal["http", "flight", "flightsql", "internal"]
Reason = Literal["cancelled", "timeout", "shutdown"]
_PREVIEW = 100
_MOST_STREAMS = 128


@dataclass(slots=True)
class ActiveQuery:
    """A running statement.

    All its waits happen inside `step`, so that `stop` can interrupt them.
    """

    query_id: QueryId
    protocol: Protocol
    sql: str
    principal: PrincipalId
    started_at_ms: int
    trace_id: str = ""
    timeout_s: float | None = None
    timeout_remedy: str = "raise runtime.query.timeout"
    release: Callable[[], None] = lambda: None
    reason: Reason | None = None
    _waiting: asyncio.Task[object] | None = field(default=None, repr=False)

    @property
    def sql_preview(self) -> str:
        """The SQL text, shortened for listings."""
        return preview(self.sql)

    def stop(self, reason: Reason) -> None:
        """Stop the statement: immediately while it waits, otherwise before its next batch."""
        if self.reason is not None:
            return
        self.reason = reason
        if self._waiting is not None:
            self._waiting.cancel()
        else:
            self.release()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wrap one wait for the engine.

        Raises:
            QueryTimeoutError, QueryCancelledError, ShuttingDownError: `stop` was called before or
                during the wait.
        """
        if self.reason is not None:
            raise self.error()
        task = asyncio.current_task()
        self._waiting = task
        try:
            yield
        except asyncio.CancelledError:
            if self.reason is None or task is None or task.uncancel() > 0:
                raise
            raise self.error() from None
        finally:
            self._waiting = None
        # `stop` may have cancelled the task just as the wait completed.
        if self.reason is not None and task is not None and task.cancelling():
            task.uncancel()
            raise self.error()

    def judged(self, exc: BaseException) -> BaseException:
        """Return the error to report for a failure.

        A cancellation that nobody requested is reported as a cut answer, which clients may retry.
        """
        if isinstance(exc, QueryCancelledError) and self.reason is None:
            reported = AnswerCutError(
                "a part of the statement was cancelled by the runtime, not by a user; run the "
                "statement again"
            )
            reported.__cause__ = exc
            return reported
        return exc

    def error(self) -> CarawayError:
        """Return the error that matches the reason for which the statement was stopped."""
        if self.reason == "timeout":
            return QueryTimeoutError(
                f"the query did not finish within {self.timeout_s:g} s and was stopped; make it "
                f"do less, or {self.timeout_remedy}"
            )
        if self.reason == "shutdown":
            return ShuttingDownError(
                "the query was stopped: the runtime is shutting down; run it again, and if it "
                "writes, look first whether it did"
            )
        return QueryCancelledError("the query was cancelled")


class ActiveQueries:
    """All running statements of this process, by id."""

    def __init__(self) -> None:
        self._queries: dict[QueryId, ActiveQuery] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._queries)

    def add(self, query: ActiveQuery) -> None:
        """Add a statement that starts."""
        self._queries[query.query_id] = query
        self._idle.clear()

    def remove(self, query: ActiveQuery) -> None:
        """Remove a statement that ended."""
        self._queries.pop(query.query_id, None)
        if not self._queries:
            self._idle.set()

    def queries_of(self, principal: PrincipalId) -> list[ActiveQuery]:
        """List the running statements of a principal, oldest first."""
        return [query for query in self._queries.values() if query.principal == principal]

    def find(self, query_id: str, principal: PrincipalId) -> ActiveQuery | None:
        """Return a running statement of the principal, or None."""
        query = self._queries.get(QueryId(query_id))
        return query if query and query.principal == principal else None

    def traced(self, trace_id: str, principal: PrincipalId) -> ActiveQuery | None:
        """Return the newest running statement of the principal in a trace, or None."""
        own = (each for each in self.queries_of(principal) if each.trace_id == trace_id)
        return max(own, key=lambda each: each.started_at_ms, default=None)

    def stop_all(self, reason: Reason) -> None:
        """Stop every running statement."""
        for query in list(self._queries.values()):
            query.stop(reason)

    async def wait_idle(self) -> None:
        """Wait until no statement is running."""
        await self._idle.wait()


def stage_streams() -> Quota[object]:
    """Return the quota of clients that follow the stages of statements."""
    limits = QuotaLimits(most=_MOST_STREAMS, most_each=_MOST_STREAMS // 8, everybody=PUBLIC)
    return Quota("streams of stages", limits, may_go=lambda _key: False)


def preview(sql: str) -> str:
    """Shorten a statement to one line of at most 100 characters."""
    line = " ".join(sql.split())
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 3] + "..."
