"""Asynchronous queries: they run on when the client goes away, and wait for it to come back.

query = client.query("SELECT * FROM orders")
...
for row in client.open_query(query.id).results():
    ...
"""

import json
import math
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from caraway import parsing, retries
from caraway.errors import BrokenAnswerError
from caraway.formats import ResultFormat
from caraway.parsing import Row
from caraway.transport import Request, Transport

OVER = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"})
LONG_POLL_S = 20.0
_PAUSE_S = 0.5
_SLACK_S = 30.0
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running query is. Totals may grow."""

    stages_done: int = 0
    stages_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class QueryState:
    """A query as it stood when it was asked for. `document` is what the server said."""

    status: str
    error_code: str = ""
    message: str = ""
    progress: Progress | None = None
    document: Row = field(default_factory=dict, repr=False)

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    @property
    def has_succeeded(self) -> bool:
        return self.status == "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class Queries:
    """What a client asks of `/v1/queries`."""

    transport: Transport
    max_retries: int
    sleep: Callable[[float], None]
    clock: Callable[[], float] = time.monotonic

    def submit(self, submission: Mapping[str, Any], idempotency_key: str = "") -> "Query":
        """Submit a query. However often this is tried, it runs once."""
        request = Request(
            "POST",
            "/v1/queries",
            accept=_JSON,
            # Dates and decimals travel as text, which the server casts to what is needed.
            body=json.dumps(submission, default=str).encode(),
            content_type=_JSON,
            extra={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )
        answer = self.transport.text(request, retries.submissions(self.max_retries))
        query_id = parsing.row(answer).get("query_id")
        if not isinstance(query_id, str) or not query_id:
            raise BrokenAnswerError(f"a query_id is expected, and the server sent: {answer[:200]}")
        return Query(query_id, self)

    def list(self, status: str, limit: int) -> list[Row]:
        """The caller's queries, the newest first."""
        query = {"limit": str(limit), **({"status": status} if status else {})}
        request = Request("GET", "/v1/queries", accept=_JSON, query=query)
        return parsing.rows(
            self.transport.text(request, retries.reads(self.max_retries)), "queries"
        )


class Query:
    """One asynchronous query, be it here or long ago that it was submitted."""

    def __init__(self, query_id: str, queries: Queries) -> None:
        self.id = query_id
        self._queries = queries
        self._path = f"/v1/queries/{quote(query_id, safe='')}"

    def status(self, wait: float = 0.0) -> QueryState:
        """Return the state: at once, or when the query is over, but after at most `wait` s."""
        query = {"wait": f"{wait:g}"} if wait else {}
        path = f"{self._path}/status"
        request = Request("GET", path, accept=_JSON, query=query, timeout_s=wait + _SLACK_S)
        return self._ask(request)

    def watch(self, step_s: float = LONG_POLL_S) -> Generator[QueryState, None, None]:
        """Yield the state at least every `step_s` seconds; the last is the one at the end."""
        while True:
            yield (state := self._poll(step_s))
            if state.is_over:
                return

    def wait(self, timeout_s: float | None = None) -> QueryState:
        """Return the state once the query is over, or as it is after the time."""
        clock = self._queries.clock
        deadline = math.inf if timeout_s is None else clock() + timeout_s
        while True:
            state = self._poll(min(LONG_POLL_S, max(0.0, deadline - clock())))
            if state.is_over or clock() >= deadline:
                return state

    def results(self) -> Generator[Row, None, None]:
        """Wait for the end, and yield the rows as they arrive."""
        with closing(self.chunks(ResultFormat.NDJSON)) as chunks:
            for line in parsing.lines(chunks):
                yield parsing.row(line)

    def chunks(self, format: ResultFormat = ResultFormat.NDJSON) -> Generator[bytes, None, None]:
        """Wait for the end, and yield the bytes of the whole answer as they arrive.

        Raises:
            RefusedError: the query failed (500), or was cancelled or has expired (410).
        """
        self.wait()
        request = Request("GET", f"{self._path}/results", accept=format.media_type, timeout_s=None)
        policy = retries.reads(self._queries.max_retries)
        with closing(self._queries.transport.chunks(request, policy)) as chunks:
            yield from parsing.array(chunks) if format is ResultFormat.JSON else chunks

    def cancel(self) -> QueryState:
        """Stop the query, unless it is over; needs a key that may write."""
        return self._ask(Request("POST", f"{self._path}/cancel", accept=_JSON))

    def _poll(self, wait_s: float) -> QueryState:
        asked_at = self._queries.clock()
        state = self.status(wait_s)
        if not state.is_over and self._queries.clock() - asked_at < wait_s / 2:
            # The server is stopping, or is of a kind that does not know how to wait.
            self._queries.sleep(min(_PAUSE_S, wait_s))
        return state

    def _ask(self, request: Request) -> QueryState:
        # Asking again does no harm, and a scheduler that is replaced is back in seconds.
        policy = retries.patient(self._queries.max_retries)
        return _state(parsing.row(self._queries.transport.text(request, policy)))


def submission(
    sql: str,
    parameters: Mapping[str, Any] | Sequence[Any] | None,
    timeout_seconds: float | None,
    maximum_size: int | None,
) -> Row:
    """The body of a submission; what is None is left out."""
    given = {
        "sql": sql,
        "parameters": parameters,
        "timeout_seconds": timeout_seconds,
        "maximum_size": maximum_size,
    }
    return {name: value for name, value in given.items() if value is not None}


def _state(document: Row) -> QueryState:
    status = document.get("status")
    if not isinstance(status, str):
        raise BrokenAnswerError(f"a status is expected, and the server sent: {document!r:.200}")
    error = document.get("error") or {}
    progress = document.get("progress") or {}
    known = {name: progress[name] for name in Progress.__slots__ if name in progress}
    return QueryState(
        status,
        str(error.get("error_code", "")),
        str(error.get("message", "")),
        Progress(**known) if known else None,
        document,
    )
