"""A synchronous client for a Caraway runtime.

with Client() as client:
    table = client.sql("SELECT * FROM orders WHERE year = :year", {"year": 2024})
"""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from caraway import addresses, asking, ingests, parsing, queries, refreshes, retries
from caraway.errors import ApiError, BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.formats import Format
from caraway.ingests import Event, IngestApi
from caraway.parsing import Row
from caraway.queries import QueryApi, QueryHandle
from caraway.readers import RecordReader
from caraway.refreshes import AccelerationStatus, RefreshApi
from caraway.statements import Parameters, StatementRunner, statement_request
from caraway.transport import ApiRequest, Transport
from caraway.transport import user_agent as full_user_agent

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.flight import FlightTransport
    from caraway.results import SqlResult

__all__ = ["Client", "Parameters"]
VERSIONED_JSON = "application/vnd.caraway.sql.v1+json"


class Client:
    """Sends requests to one runtime: statements over Flight or HTTP, everything else over HTTP.

    What is not given comes from the variables CARAWAY_API_KEY, CARAWAY_HTTP_URL,
    CARAWAY_FLIGHT_URL and CARAWAY_TLS_ROOT_CERT, and else is a runtime on this machine. With only
    one URL, the other protocol is not used, unless the URL is that of a runtime on this machine at
    the default port. A client may be used by several threads. Every method may raise
    UnreachableError, ApiError and BrokenResponseError.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        http_url: str | None = None,
        flight_url: str | None = None,
        tls_root_cert: str | Path | None = None,
        tls_client_cert: tuple[str | Path, str | Path] | None = None,
        user_agent: str = "",
        max_retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`tls_client_cert` is a certificate and its key, both files in PEM."""
        key = os.environ.get("CARAWAY_API_KEY", "") if api_key is None else api_key
        roots = tls_root_cert or os.environ.get("CARAWAY_TLS_ROOT_CERT") or None
        self._addresses = addresses.resolve(http_url, flight_url, os.environ)
        self._root_cert = Path(roots) if roots else None
        self._client_cert = (
            (Path(tls_client_cert[0]), Path(tls_client_cert[1])) if tls_client_cert else None
        )
        self._key = key
        self._user_agent = user_agent
        self._flight: FlightTransport | None = None
        self._is_closed = False
        self._http = (
            Transport(
                self._addresses.http_url,
                key,
                self._root_cert,
                sleep,
                agent=user_agent,
                client_cert=self._client_cert,
                max_retries=max_retries,
            )
            if self._addresses.http_url
            else None
        )
        self._sleep = sleep
        self._runner = StatementRunner(
            self._http,
            self._open_flight if self._addresses.flight else None,
            sleep,
            allows_fallback=self._addresses.allows_fallback,
            max_retries=max_retries,
        )

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
        """The HTTP URL of the runtime, or that of Flight if HTTP is not used."""
        if self._addresses.flight is not None and self._http is None:
            return self._addresses.flight.location
        return self._transport.endpoint

    @property
    def uses_flight(self) -> bool:
        """Whether statements go over Flight first."""
        return self._addresses.flight is not None

    def set_max_retries(self, retries: int) -> None:
        """Set how often a request is tried again; 0 turns that off."""
        if retries < 0:
            raise ValueError("retries must be 0 or more")
        self._runner.max_retries = retries
        if self._http is not None:
            self._http.max_retries = retries

    def close(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        self._is_closed = True
        if self._http is not None:
            self._http.close()
        if self._flight is not None:
            self._flight.close()

    def sql(
        self,
        statement: str,
        parameters: Parameters | None = None,
        *,
        on_data: "Callable[[pa.RecordBatch], object] | None" = None,
        timeout_s: float | None = None,
    ) -> "SqlResult":
        """Run a statement and return all its rows as an Arrow table.

        A mapping binds `:name`, a sequence `$1` or `?`. `on_data` gets each batch as it arrives.
        `timeout_s` limits the whole statement over Flight, and each wait for rows over HTTP.
        """
        return self.reader(statement, parameters, timeout_s=timeout_s).read_all(on_data)

    def reader(
        self,
        statement: str,
        parameters: Parameters | None = None,
        *,
        timeout_s: float | None = None,
    ) -> RecordReader:
        """Run a statement and read its rows batch by batch, in constant memory.

        Closing the reader cancels the statement.
        """
        return self._runner.open(statement, parameters, timeout_s)

    def sql_json(
        self,
        statement: str,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Row:
        """Run a statement and return `{row_count, schema, data, execution_time_ms}`."""
        request = statement_request(statement, parameters, VERSIONED_JSON, extra=headers)
        body = self._transport.text(request, retries.once())
        return parsing.parse_object(body)

    def sql_chunks(
        self, query: str, parameters: Parameters | None = None, format: Format = Format.JSON
    ) -> Generator[bytes, None, None]:
        """Run a statement over HTTP and yield the bytes of the response.

        Closing the generator cancels the statement.
        """
        request = statement_request(query, parameters, format.media_type)
        # A second copy of a statement that has begun would cost the server too much.
        return self._transport.chunks(
            request, retries.statements(min(self._runner.max_retries, 2), is_read=False)
        )

    def nsql(
        self,
        query: str,
        *,
        datasets: Iterable[str] | None = None,
        model: str | None = None,
        sample_data_enabled: bool | None = None,
    ) -> Row:
        """Have a model write a statement for a question, and run it.

        Returns `{row_count, schema, data, sql}`.
        """
        options = {
            "datasets": datasets,
            "model": model,
            "sample_data_enabled": sample_data_enabled,
        }
        return asking.nsql(self._transport, query, options)

    def search(
        self,
        text: str,
        *,
        datasets: Iterable[str] | None = None,
        limit: int | None = None,
        where: str | None = None,
        additional_columns: Iterable[str] | None = None,
        keywords: Iterable[str] | None = None,
    ) -> Row:
        """Search datasets by meaning and by words. Returns `{results, duration_ms}`."""
        options = {
            "datasets": datasets,
            "limit": limit,
            "where": where,
            "additional_columns": additional_columns,
            "keywords": keywords,
        }
        return asking.search(self._transport, text, options)

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

    def list_queries(self, status: str = "", limit: int = 100) -> list[Row]:
        """List the caller's asynchronous queries, newest first.

        `status` limits the list to one status, such as `failed`.
        """
        return self._queries.list(status, limit)

    def datasets(self, *, status: bool = False) -> list[Row]:
        """List the datasets; `status` adds the status and error message of each."""
        return self.rows("datasets", {"status": "true"} if status else {})

    def refresh_acceleration(
        self,
        dataset: str,
        *,
        refresh_mode: str | None = None,
        refresh_sql: str | None = None,
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
        return self._refreshes.request_refresh(dataset, given)

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
        return IngestApi(self._transport).send_events(name, events, batch_events)

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

    def is_service_ready(self) -> bool:
        """Whether every component is ready; False if the runtime cannot be reached."""
        try:
            return self.readiness()[0]
        except (UnreachableError, BrokenResponseError):
            return False

    def is_service_healthy(self) -> bool:
        """Whether the process responds."""
        request = ApiRequest("GET", "/health", accept="text/plain", timeout_s=5.0, sends_key=False)
        try:
            return self._transport.text(request, retries.once()).strip() == "ok"
        except (UnreachableError, ApiError, BrokenResponseError):
            return False

    def active_queries(self) -> list[Row]:
        """List the statements running now. Requires a key with write access."""
        request = ApiRequest("GET", "/v1/sql/active", accept=Format.JSON.media_type)
        return parsing.parse_list(self._transport.text(request, self._reads), "queries")

    def cancel_active_query(self, query_id: str) -> None:
        """Cancel a running statement. Requires a key with write access.

        Raises:
            ApiError: with status 404 if the statement is not running.
        """
        path = f"/v1/sql/{quote(query_id, safe='')}/cancel"
        request = ApiRequest("POST", path, accept=Format.JSON.media_type)
        self._transport.text(request, retries.once())

    @property
    def _transport(self) -> Transport:
        if self._http is None:
            raise InvalidEndpointError("this needs HTTP: set http_url")
        return self._http

    @property
    def _queries(self) -> QueryApi:
        return QueryApi(self._transport, self._sleep)

    @property
    def _refreshes(self) -> RefreshApi:
        return RefreshApi(self._transport, self._sleep)

    @property
    def _reads(self) -> retries.RetryPolicy:
        return retries.reads(self._runner.max_retries)

    def _open_flight(self) -> "FlightTransport":
        # pyarrow.flight takes long to import; a client that never runs a statement does without.
        from caraway.flight import FlightTransport

        assert self._addresses.flight is not None
        if self._flight is None:
            self._flight = FlightTransport(
                self._addresses.flight,
                self._key,
                self._root_cert,
                full_user_agent(self._user_agent),
                self._client_cert,
            )
            if self._is_closed:
                self._flight.close()
        return self._flight
