"""A synchronous client of a Caraway runtime.

with Client("http://127.0.0.1:8090") as client:
    for row in client.sql_stream("SELECT * FROM orders WHERE year = :year", {"year": 2024}):
        ...
"""

import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from caraway import ingests, parsing, queries, refreshes, retries
from caraway.errors import BrokenAnswerError, RefusedError, UnreachableError
from caraway.formats import Format
from caraway.ingests import Event, Ingests
from caraway.parsing import Row
from caraway.queries import Queries, Query
from caraway.refreshes import Refreshes, Standing
from caraway.transport import Request, Transport

DEFAULT_ENDPOINT = "http://127.0.0.1:8090"

# By name, or in order.
Parameters = Mapping[str, Any] | Sequence[Any]


class Client:
    """Talks to one runtime over HTTP. Every method may raise UnreachableError, RefusedError
    and BrokenAnswerError."""

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        api_key: str = "",
        *,
        cacert: Path | None = None,
        max_retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = Transport(endpoint, api_key, cacert, sleep)
        self._reads = retries.reads(max_retries)
        self._statements = retries.statements(max_retries)
        self._queries = Queries(self._transport, max_retries, sleep)
        self._refreshes = Refreshes(self._transport, max_retries, sleep)
        self._ingests = Ingests(self._transport, max_retries)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        """The address that requests go to."""
        return self._transport.endpoint

    def close(self) -> None:
        """Close the connections; the client is of no use afterwards."""
        self._transport.close()

    def sql(self, query: str, parameters: Parameters | None = None) -> list[Row]:
        """Run a statement and hold all its rows."""
        return list(self.sql_stream(query, parameters))

    def sql_stream(
        self, query: str, parameters: Parameters | None = None
    ) -> Generator[Row, None, None]:
        """Run a statement and yield its rows as they arrive; closing the generator cancels it."""
        with closing(self.sql_chunks(query, parameters, Format.NDJSON)) as chunks:
            for line in parsing.lines(chunks):
                yield parsing.row(line)

    def sql_chunks(
        self, query: str, parameters: Parameters | None = None, format: Format = Format.JSON
    ) -> Generator[bytes, None, None]:
        """Run a statement and yield the bytes of the answer; closing the generator cancels it."""
        body, content_type = _statement(query, parameters)
        request = Request(
            "POST",
            "/v1/sql",
            accept=format.media_type,
            body=body,
            content_type=content_type,
            timeout_s=None,
        )
        return self._transport.chunks(request, self._statements)

    def query(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        timeout_seconds: float | None = None,
        maximum_size: int | None = None,
        idempotency_key: str = "",
    ) -> Query:
        """Submit a query that runs whether or not anybody waits for it.

        A key of the caller's own makes that true of several calls, too: they give one query.
        """
        submission = queries.submission(sql, parameters, timeout_seconds, maximum_size)
        return self._queries.submit(submission, idempotency_key)

    def open_query(self, query_id: str) -> Query:
        """A query that was submitted before; nothing is asked of the server yet."""
        return Query(query_id, self._queries)

    def queries(self, status: str = "", limit: int = 100) -> list[Row]:
        """The caller's asynchronous queries, the newest first; `status` is one such as failed."""
        return self._queries.list(status, limit)

    def datasets(self, *, status: bool = False) -> list[Row]:
        """The datasets; with `status`, also their state and what is wrong with them."""
        return self.rows("datasets", {"status": "true"} if status else {})

    def refresh(
        self,
        name: str,
        refresh_sql: str | None = None,
        refresh_mode: str | None = None,
        refresh_jitter_max: str | float | None = None,
    ) -> str:
        """Have an accelerated dataset refreshed; return what the server says to it.

        While a refresh runs, one more is kept waiting. What is not None is otherwise than the
        manifest has it, for this refresh only.
        """
        wanted = {
            "refresh_sql": refresh_sql,
            "refresh_mode": refresh_mode,
            "refresh_jitter_max": refresh_jitter_max,
        }
        given = {key: value for key, value in wanted.items() if value is not None}
        return self._refreshes.ask(name, given)

    def watch_refresh(
        self, name: str, before: Row, longest_pause_s: float = 2.0
    ) -> Generator[Standing, None, None]:
        """Yield how a dataset stands until the refresh that was just asked for is over.

        `before` is what `acceleration` returned before the asking.

        Raises:
            RefreshError: it failed, or nothing comes of it.
        """
        return self._refreshes.watch(name, refreshes.standing(before), longest_pause_s)

    def acceleration(self, name: str) -> Row:
        """Which version of an accelerated dataset is read, and how its refresh stands."""
        return self._refreshes.document(name)

    def set_refresh_sql(self, name: str, sql: str | None) -> None:
        """Change what is loaded, from the next refresh until the next start of the server.

        None: it stays as it is.
        """
        self._refreshes.configure(name, {"refresh_sql": sql})

    def ingest(self, name: str, events: Iterable[Event]) -> int:
        """Apply change events to a dataset, in order; return how many were applied.

        An event is a Debezium envelope, as a mapping or as its JSON. They are sent in requests of
        a thousand; of one request all are applied or none. What failed on the way is sent again
        under the same key, so that nothing is applied twice.
        """
        return sum(self.ingests(name, events))

    def ingests(
        self, name: str, events: Iterable[Event], batch_events: int = ingests.BATCH_EVENTS
    ) -> Generator[int, None, None]:
        """As `ingest`; yield how many were applied after each request."""
        return self._ingests.send(name, events, batch_events)

    def catalogs(self) -> list[Row]:
        """The catalogs."""
        return self.rows("catalogs")

    def status(self) -> list[Row]:
        """The runtime's connections: name, endpoint and state."""
        return self.rows("status")

    def rows(self, name: str, query: Mapping[str, str] | None = None) -> list[Row]:
        """The entries of a list route."""
        return parsing.rows(self.listing(name, query))

    def listing(
        self, name: str, query: Mapping[str, str] | None = None, format: Format = Format.JSON
    ) -> str:
        """The unparsed body of a list route, as JSON or CSV."""
        asked = dict(query or {})
        if format is Format.CSV:
            asked["format"] = "csv"
        request = Request("GET", f"/v1/{name}", accept=format.media_type, query=asked)
        return self._transport.text(request, self._reads)

    def readiness(self, *, verbose: bool = False) -> tuple[bool, str]:
        """Whether the runtime is ready, and what it says about it."""
        query = {"verbose": "true"} if verbose else {}
        request = Request("GET", "/v1/ready", accept="text/plain", query=query)
        try:
            return True, self._transport.text(request, retries.once())
        except RefusedError as refused:
            if refused.status != 503:
                raise
            return False, refused.message

    def is_ready(self) -> bool:
        """Whether every component is ready; False also when nobody answers."""
        try:
            return self.readiness()[0]
        except UnreachableError:
            return False

    def is_healthy(self) -> bool:
        """Whether the process answers."""
        request = Request("GET", "/health", accept="text/plain", timeout_s=5.0)
        try:
            return self._transport.text(request, retries.once()).strip() == "ok"
        except (UnreachableError, RefusedError, BrokenAnswerError):
            return False

    def active(self) -> list[Row]:
        """The statements that run now; needs a key that may write."""
        request = Request("GET", "/v1/sql/active", accept=Format.JSON.media_type)
        return parsing.rows(self._transport.text(request, self._reads), "queries")

    def cancel(self, query_id: str) -> None:
        """Cancel a statement; needs a key that may write.

        Raises:
            RefusedError: status 404 when it does not run (any more).
        """
        path = f"/v1/sql/{quote(query_id, safe='')}/cancel"
        request = Request("POST", path, accept=Format.JSON.media_type)
        self._transport.text(request, retries.once())


def _statement(query: str, parameters: Parameters | None) -> tuple[bytes, str]:
    if not parameters:
        return query.encode(), "text/plain"
    given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    # Dates and decimals travel as text, which the server casts to what the statement needs.
    body = json.dumps({"sql": query, "parameters": given}, default=str)
    return body.encode(), "application/json"
