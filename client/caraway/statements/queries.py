"""Asynchronous queries, which keep running and keep their results if the client disconnects.

query = client.query("SELECT * FROM orders")
...
table = client.open_query(query.id).results()
"""

import math
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.requests import arguments, parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport
from caraway.rows.formats import ResultFormat
from caraway.statements.statements import encode_json
from caraway_core.concurrency.clocks import SecondsClock, Sleep

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.flight.connections import FlightTransport
    from caraway.rows.readers import RecordReader
    from caraway.rows.results import SqlResult

OVER = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"})
LONG_POLL_S = 20.0
_PAUSE_S = 0.5
_PROGRESS_S = 1.0
_SLACK_S = 30.0
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """Progress of a running query. Totals may grow while it runs."""

    stages_done: int = 0
    stages_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state of a query at one moment. `document` is the server's response."""

    status: str
    error_code: str = ""
    message: str = ""
    progress: QueryProgress | None = None
    document: Row = field(default_factory=dict, repr=False)

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    @property
    def has_succeeded(self) -> bool:
        return self.status == "SUCCEEDED"


class QueryCalls(Protocol):
    """The calls of handles to a server. `status_of` waits up to `wait` seconds, where it can."""

    @property
    def sleep(self) -> Sleep: ...
    @property
    def clock(self) -> SecondsClock: ...
    def submit(self, submission: Mapping[str, Any], idempotency_key: str = "") -> "QueryHandle": ...
    def list(self, status: str, limit: int) -> list[Row]: ...
    def status_of(self, query_id: str, wait: float) -> Row: ...
    def cancel(self, query_id: str) -> Row: ...
    def open_rows(self, query_id: str) -> "RecordReader": ...
    def chunks(self, query_id: str, format: ResultFormat) -> Generator[bytes, None, None]: ...


@dataclass(frozen=True, slots=True)
class QueryApi:
    """The routes below `/v1/queries`. Stored rows come over Flight, where `flight` is given."""

    transport: Transport
    sleep: Sleep
    clock: SecondsClock = time.monotonic
    flight: "Callable[[], FlightTransport] | None" = None

    def submit(self, submission: Mapping[str, Any], idempotency_key: str = "") -> "QueryHandle":
        """Submit a query. The idempotency key makes retries safe: the query runs once."""
        request = ApiRequest(
            "POST",
            "/v1/queries",
            accept=_JSON,
            body=encode_json(submission),
            content_type=_JSON,
            extra={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )
        answer = self.transport.text(request, retries.submissions(self.transport.max_retries))
        query_id = parsing.parse_object(answer).get("query_id")
        if not isinstance(query_id, str) or not query_id:
            raise BrokenResponseError(f"expected a query_id, but the server sent: {answer[:200]}")
        return QueryHandle(query_id, self)

    def list(self, status: str, limit: int) -> list[Row]:
        """List the caller's queries, newest first."""
        query = {"limit": str(limit), **({"status": status} if status else {})}
        request = ApiRequest("GET", "/v1/queries", accept=_JSON, query=query)
        return parsing.parse_list(
            self.transport.text(request, retries.reads(self.transport.max_retries)), "queries"
        )

    def status_of(self, query_id: str, wait: float) -> Row:
        """Return the status of a query, waiting up to `wait` seconds for it to finish."""
        query = {"wait": f"{wait:g}"} if wait else {}
        path = f"{_path(query_id)}/status"
        request = ApiRequest("GET", path, accept=_JSON, query=query, timeout_s=wait + _SLACK_S)
        return self._fetch(request)

    def cancel(self, query_id: str) -> Row:
        """Cancel a query unless it has finished, and return its status."""
        return self._fetch(ApiRequest("POST", f"{_path(query_id)}/cancel", accept=_JSON))

    def open_rows(self, query_id: str) -> "RecordReader":
        """Begin to read the rows of a finished query."""
        from caraway.requests.arrow_bodies import HttpBatches
        from caraway.rows.readers import opened

        if self.flight is not None:
            try:
                return opened(self.flight().open_query(query_id))
            # HTTP says more exactly what is wrong, such as that the results have expired.
            except (UnreachableError, ApiError, BrokenResponseError):
                pass
        return opened(HttpBatches(self.chunks(query_id, ResultFormat.ARROW)))

    def chunks(self, query_id: str, format: ResultFormat) -> Generator[bytes, None, None]:
        """Yield the bytes of the results of a finished query as they arrive."""
        path = f"{_path(query_id)}/results"
        request = ApiRequest("GET", path, accept=format.media_type, timeout_s=None)
        policy = retries.reads(self.transport.max_retries)
        with closing(self.transport.chunks(request, policy)) as chunks:
            yield from parsing.lines_to_array(chunks) if format is ResultFormat.JSON else chunks

    def _fetch(self, request: ApiRequest) -> Row:
        # These requests are safe to repeat, and a replaced scheduler is back within seconds.
        policy = retries.patient(self.transport.max_retries)
        return parsing.parse_object(self.transport.text(request, policy))


class QueryHandle:
    """A handle for one asynchronous query."""

    def __init__(self, query_id: str, queries: QueryCalls) -> None:
        self.id = query_id
        self._queries = queries

    def __repr__(self) -> str:
        return f"QueryHandle({self.id!r})"

    def status(self, wait: float = 0.0) -> QueryState:
        """Return the state of the query, waiting up to `wait` seconds for it to finish."""
        return _state(self._queries.status_of(self.id, wait))

    def watch(self, step_s: float = LONG_POLL_S) -> Generator[QueryState, None, None]:
        """Yield the state at least every `step_s` seconds, and last the final state."""
        while True:
            yield (state := self._poll(step_s))
            if state.is_over:
                return

    def wait(
        self,
        timeout_s: float | None = None,
        on_progress: Callable[[QueryState], object] | None = None,
    ) -> QueryState:
        """Wait for the query to finish, at most `timeout_s` seconds, and return its state.

        `on_progress` gets the state about once a second, and last the one that is returned.
        `caraway.progress.show` prints it.
        """
        clock = self._queries.clock
        deadline = math.inf if timeout_s is None else clock() + timeout_s
        step_s = LONG_POLL_S if on_progress is None else _PROGRESS_S
        while True:
            state = self._poll(min(step_s, max(0.0, deadline - clock())))
            if on_progress is not None:
                on_progress(state)
            if state.is_over or clock() >= deadline:
                return state

    def results(self, on_data: "Callable[[pa.RecordBatch], object] | None" = None) -> "SqlResult":
        """Wait for the query to finish and return its rows.

        Raises:
            ApiError: the query failed (500), or was cancelled or has expired (410).
        """
        return self.reader().read_all(on_data)

    def reader(self) -> "RecordReader":
        """Wait for the query to finish and read its rows batch by batch, in constant memory.

        Raises:
            ApiError: the query failed (500), or was cancelled or has expired (410).
        """
        self.wait()
        return self._queries.open_rows(self.id)

    def chunks(self, format: ResultFormat = ResultFormat.NDJSON) -> Generator[bytes, None, None]:
        """Wait for the query to finish, then yield the bytes of its results as they arrive.

        Raises:
            ApiError: the query failed (500), or was cancelled or has expired (410).
        """
        self.wait()
        yield from self._queries.chunks(self.id, format)

    def cancel(self) -> QueryState:
        """Cancel the query unless it has finished. Requires a key with write access."""
        return _state(self._queries.cancel(self.id))

    def _poll(self, wait_s: float) -> QueryState:
        started_at = self._queries.clock()
        state = self.status(wait_s)
        if not state.is_over and self._queries.clock() - started_at < wait_s / 2:
            # The server is stopping or does not support long polling: do not poll in a tight loop.
            self._queries.sleep(min(_PAUSE_S, wait_s))
        return state


def submission(
    sql: str,
    parameters: Mapping[str, object] | Sequence[object] | None,
    timeout_seconds: float | None,
    maximum_size: int | None,
) -> Row:
    """Return the body of a submission, without the fields that are None."""
    arguments.statement(sql, parameters)
    given = {
        "sql": sql,
        "parameters": parameters,
        "timeout_seconds": timeout_seconds,
        "maximum_size": maximum_size,
    }
    return {name: value for name, value in given.items() if value is not None}


def _path(query_id: str) -> str:
    return f"/v1/queries/{quote(query_id, safe='')}"


def _state(document: Row) -> QueryState:
    status = document.get("status")
    if not isinstance(status, str):
        raise BrokenResponseError(f"expected a status, but the server sent: {document!r:.200}")
    error = document.get("error") or {}
    progress = document.get("progress") or {}
    known = {name: progress[name] for name in QueryProgress.__slots__ if name in progress}
    return QueryState(
        status,
        str(error.get("error_code", "")),
        str(error.get("message", "")),
        QueryProgress(**known) if known else None,
        document,
    )
