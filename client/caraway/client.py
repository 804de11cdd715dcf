"""A synchronous client for a Caraway runtime.

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
from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.formats import Format
from caraway.ingests import Event, IngestApi
from caraway.parsing import Row
from caraway.queries import QueryApi, QueryHandle
from caraway.refreshes import AccelerationStatus, RefreshApi
from caraway.transport import ApiRequest, Transport

DEFAULT_ENDPOINT = "http://127.0.0.1:8090"

# A mapping binds parameters by name, a sequence by position.
Parameters = Mapping[str, Any] | Sequence[Any]


class Client:
    """Sends requests to one runtime over HTTP.

    Every method may raise UnreachableError, ApiError and BrokenResponseError.
    """

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
        self._queries = QueryApi(self._transport, max_retries, sleep)
        self._refreshes = RefreshApi(self._transport, max_retries, sleep)
        self._ingests = IngestApi(self._transport, max_retries)

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
        """The base URL of the runtime."""
        return self._transport.endpoint

    def close(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        self._transport.close()

    def sql(self, query: str, parameters: Parameters | None = None) -> list[Row]:
        """Run a statement and return all its rows."""
        return list(self.sql_stream(query, parameters))

    def sql_stream(
        self, query: str, parameters: Parameters | None = None
    ) -> Generator[Row, None, None]:
        """Run a statement and yield its rows as they arrive.

        Closing the generator cancels the statement.
        """
        with closing(self.sql_chunks(query, parameters, Format.NDJSON)) as chunks:
            for line in parsing.iter_lines(chunks):
                yield parsing.parse_object(line)

    def sql_chunks(
        self, query: str, parameters: Parameters | None = None, format: Format = Format.JSON
    ) -> Generator[bytes, None, None]:
        """Run a statement and yield the bytes of the response.

        Closing the generator cancels the statement.
        """
        body, content_type = _statement(query, parameters)
        request = ApiRequest(
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
    ) -> QueryHandle:
        """Submit an asynchronous query. It keeps running if the client disconnects.

        Calls with the same `idempotency_key` return the same query.
        """
        submission = queries.submission(sql, parameters, timeout_seconds, maximum_size)
        return self._queries.submit(submission, idempotency_key)

    def open_query(self, query_id: str) -> QueryHandle:
        """Return a handle for a query submitted earlier, without contacting the server."""
        return QueryHandle(query_id, self._queries)

    def queries(self, status: str = "", limit: int = 100) -> list[Row]:
        """List the caller's asynchronous queries, newest first.

        `status` limits the list to one status, such as `failed`.
        """
        return self._queries.list(status, limit)

    def datasets(self, *, status: bool = False) -> list[Row]:
        """List the datasets; `status` adds the status and error message of each."""
        return self.rows("datasets", {"status": "true"} if status else {})

    def refresh(
        self,
        name: str,
        refresh_sql: str | None = None,
        refresh_mode: str | None = None,
        refresh_jitter_max: str | float | None = None,
    ) -> str:
        """Request a refresh of an accelerated dataset and return the server's message.

        If a refresh is running, one more is queued. Arguments other than None override the
        manifest for this refresh only.
        """
        overrides = {
            "refresh_sql": refresh_sql,
            "refresh_mode": refresh_mode,
            "refresh_jitter_max": refresh_jitter_max,
        }
        given = {key: value for key, value in overrides.items() if value is not None}
        return self._refreshes.request_refresh(name, given)

    def watch_refresh(
        self, name: str, before: Row, longest_pause_s: float = 2.0
    ) -> Generator[AccelerationStatus, None, None]:
        """Yield the status of a dataset until the refresh just requested has finished.

        `before` is what `acceleration` returned before the request.

        Raises:
            RefreshError: the refresh failed or never started.
        """
        return self._refreshes.watch_refresh(name, refreshes.parse_status(before), longest_pause_s)

    def acceleration(self, name: str) -> Row:
        """Return the current version of an accelerated dataset and the state of its refresh."""
        return self._refreshes.fetch_acceleration(name)

    def set_refresh_sql(self, name: str, sql: str | None) -> None:
        """Set the refresh SQL from the next refresh until the server restarts.

        None leaves it unchanged.
        """
        self._refreshes.configure(name, {"refresh_sql": sql})

    def ingest(self, name: str, events: Iterable[Event]) -> int:
        """Apply change events to a dataset in order and return how many were applied.

        An event is a Debezium envelope, as a mapping or as JSON. Events are sent in batches of a
        thousand; each batch is applied completely or not at all. A batch is retried with the same
        idempotency key, so no event is applied twice.
        """
        return sum(self.ingests(name, events))

    def ingests(
        self, name: str, events: Iterable[Event], batch_events: int = ingests.BATCH_EVENTS
    ) -> Generator[int, None, None]:
        """Like `ingest`, but yield the number of events applied after each batch."""
        return self._ingests.send_events(name, events, batch_events)

    def catalogs(self) -> list[Row]:
        """List the catalogs."""
        return self.rows("catalogs")

    def status(self) -> list[Row]:
        """List the runtime's servers with their name, endpoint and status."""
        return self.rows("status")

    def rows(self, name: str, query: Mapping[str, str] | None = None) -> list[Row]:
        """Return the entries of a list route."""
        return parsing.parse_list(self.listing(name, query))

    def listing(
        self, name: str, query: Mapping[str, str] | None = None, format: Format = Format.JSON
    ) -> str:
        """Return the unparsed body of a list route, as JSON or CSV."""
        parameters = dict(query or {})
        if format is Format.CSV:
            parameters["format"] = "csv"
        request = ApiRequest("GET", f"/v1/{name}", accept=format.media_type, query=parameters)
        return self._transport.text(request, self._reads)

    def readiness(self, *, verbose: bool = False) -> tuple[bool, str]:
        """Return whether the runtime is ready, and the text of its response."""
        query = {"verbose": "true"} if verbose else {}
        request = ApiRequest("GET", "/v1/ready", accept="text/plain", query=query)
        try:
            return True, self._transport.text(request, retries.once())
        except ApiError as error:
            if error.status != 503:
                raise
            return False, error.message

    def is_ready(self) -> bool:
        """Whether every component is ready; False if the runtime cannot be reached."""
        try:
            return self.readiness()[0]
        except UnreachableError:
            return False

    def is_healthy(self) -> bool:
        """Whether the process responds."""
        request = ApiRequest("GET", "/health", accept="text/plain", timeout_s=5.0)
        try:
            return self._transport.text(request, retries.once()).strip() == "ok"
        except (UnreachableError, ApiError, BrokenResponseError):
            return False

    def active(self) -> list[Row]:
        """List the statements running now. Requires a key with write access."""
        request = ApiRequest("GET", "/v1/sql/active", accept=Format.JSON.media_type)
        return parsing.parse_list(self._transport.text(request, self._reads), "queries")

    def cancel(self, query_id: str) -> None:
        """Cancel a running statement. Requires a key with write access.

        Raises:
            ApiError: with status 404 if the statement is not running.
        """
        path = f"/v1/sql/{quote(query_id, safe='')}/cancel"
        request = ApiRequest("POST", path, accept=Format.JSON.media_type)
        self._transport.text(request, retries.once())


def _statement(query: str, parameters: Parameters | None) -> tuple[bytes, str]:
    if not parameters:
        return query.encode(), "text/plain"
    given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    # Dates and decimals are sent as strings, which the server casts to the type it needs.
    body = json.dumps({"sql": query, "parameters": given}, default=str)
    return body.encode(), "application/json"
