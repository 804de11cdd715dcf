"""A synchronous client for a Caraway runtime.

with Client() as client:
    table = client.sql("SELECT * FROM orders WHERE year = :year", {"year": 2024})
"""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from caraway.errors import InvalidEndpointError
from caraway.requests import addresses, arguments, parsing, retries
from caraway.requests.arguments import Parameters
from caraway.requests.closing import Closing
from caraway.requests.parsing import Row
from caraway.requests.transport import Transport
from caraway.requests.transport import user_agent as full_user_agent
from caraway.routes import asking, chatting
from caraway.routes.routes import RuntimeRoutes
from caraway.rows.formats import Format
from caraway.rows.readers import RecordReader
from caraway.statements import queries
from caraway.statements.queries import QueryApi, QueryCalls, QueryHandle
from caraway.statements.statements import StatementRunner, statement_request
from caraway_core.concurrency.clocks import Sleep
from caraway_core.sqltext import writing

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.flight.connections import FlightTransport
    from caraway.rows.results import SqlResult

__all__ = ["Client", "Parameters"]
CERT_VARIABLES = ("CARAWAY_TLS_ROOT_CERT", "CARAWAY_CACERT")
VERSIONED_JSON = "application/vnd.caraway.sql.v1+json"


class Client(RuntimeRoutes, Closing):
    """Sends requests to one runtime: statements over Flight or HTTP, everything else over HTTP.

    What is not given comes from the variables CARAWAY_API_KEY, CARAWAY_HTTP_URL,
    CARAWAY_FLIGHT_URL and CARAWAY_TLS_ROOT_CERT, and else is a runtime on this machine. With only
    one URL, the other protocol is not used, unless the URL is that of a runtime on this machine at
    the default port. A client may be used by several threads. Every method may raise
    UnreachableError, ApiError and BrokenResponseError.
    """

    _sleep: ClassVar[Sleep] = staticmethod(time.sleep)

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
    ) -> None:
        """`tls_client_cert` is a certificate and its key, both files in PEM."""
        key = os.environ.get("CARAWAY_API_KEY", "") if api_key is None else api_key
        roots = tls_root_cert or next(filter(None, map(os.environ.get, CERT_VARIABLES)), None)
        self._addresses = addresses.resolve(http_url, flight_url, os.environ)
        self._root_cert = Path(roots) if roots else None
        self._client_cert = (
            (Path(tls_client_cert[0]), Path(tls_client_cert[1])) if tls_client_cert else None
        )
        self._key = arguments.header("api_key", key)
        self._user_agent = arguments.header("user_agent", user_agent)
        arguments.retries(max_retries)
        self._flight: FlightTransport | None = None
        self._is_closed = False
        self._http = (
            Transport(
                self._addresses.http_url,
                key,
                self._root_cert,
                self._sleep,
                agent=user_agent,
                client_cert=self._client_cert,
                max_retries=max_retries,
            )
            if self._addresses.http_url
            else None
        )
        self._runner = StatementRunner(
            self._http,
            self._open_flight if self._addresses.flight else None,
            self._sleep,
            allows_fallback=self._addresses.allows_fallback,
            max_retries=max_retries,
        )

    @property
    def endpoint(self) -> str:
        """The HTTP URL of the runtime, or that of Flight if HTTP is not used."""
        if self._addresses.flight is not None and self._http is None:
            return self._addresses.flight.location
        return self._transport.endpoint

    @property
    def uses_http(self) -> bool:
        """True if the client has an HTTP URL."""
        return self._http is not None

    @property
    def uses_flight(self) -> bool:
        """True if statements go over Flight first."""
        return self._addresses.flight is not None

    def set_max_retries(self, retries: int) -> None:
        """Set how often a request is tried again; 0 turns that off."""
        self._runner.max_retries = arguments.retries(retries)
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
        is_read = not writing.may_change(statement)
        policy = retries.statements(self._runner.max_retries, is_read=is_read)
        return parsing.parse_object(self._transport.text(request, policy))

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

    def models(self) -> Sequence[str]:
        """Return the names of the models of the runtime."""
        return chatting.models(self._transport)

    def chat(
        self, model: str, messages: Sequence[chatting.Message], *, shows_calls: bool = False
    ) -> Generator[str, None, None]:
        """Yield the answer of a model as it arrives; with `shows_calls`, also calls of tools.

        `messages` are `{role, content}`, the last one from the user.
        """
        return chatting.answer(self._transport, model, messages, shows_calls=shows_calls)

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

    def nsql_generate_sql(
        self,
        query: str,
        *,
        datasets: Iterable[str] | None = None,
        model: str | None = None,
        sample_data_enabled: bool | None = None,
    ) -> str:
        """Have a model write a statement for a question, and return it without running it."""
        options = {
            "datasets": datasets,
            "model": model,
            "sample_data_enabled": sample_data_enabled,
        }
        return asking.nsql_generate_sql(self._transport, query, options)

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
        """Search datasets by meaning and by words. Returns `{results, duration_ms}`.

        Each result has `dataset`, `score`, `primary_key`, `matches` (lists of the matched values by
        column) and `data` (the additional columns). Without `datasets`, all that can be searched
        are. `where` is an SQL condition, and `keywords` are words that a result must contain.
        """
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

        Raises:
            CarawayError: there is no such status, or the list cannot be read.
        """
        return self._queries.list(arguments.query_status(status), limit)

    @property
    def _transport(self) -> Transport:
        if self._http is None:
            raise InvalidEndpointError("this needs HTTP: set http_url")
        return self._http

    @property
    def _queries(self) -> QueryCalls:
        if self._http is None:
            from caraway.statements.flight_queries import FlightQueries

            return FlightQueries(self._open_flight(), self._runner.max_retries, self._sleep)
        flight = self._open_flight if self._addresses.flight is not None else None
        return QueryApi(self._http, self._sleep, flight=flight)

    def _open_flight(self) -> "FlightTransport":
        # pyarrow.flight takes long to import; a client that never runs a statement does without.
        from caraway.flight.connections import FlightTransport

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
