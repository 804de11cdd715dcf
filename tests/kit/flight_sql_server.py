"""A Flight SQL server of its own over a DuckDB in memory, for the source of such servers."""

import base64
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from pyarrow import flight

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as messages
from caraway_plugins.sources.flightsql.source import FlightSqlSource

LOGIN = {"flightsql_username": "reader", "flightsql_password": "hunter2"}


@dataclass
class FlightSqlServer:
    """A server. `sent` are the statements that it got; `flow` says how rows are sent."""

    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    sent: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    uri: str = ""
    breaks_after: int | None = None
    """The number of batches after which each answer breaks off."""
    is_endless: bool = False
    """Whether answers repeat their rows until nobody reads them any more."""
    has_begun: threading.Event = field(default_factory=threading.Event)
    has_ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, sql: str) -> pa.Table:
        """Run a statement over the tables."""
        with self._lock:
            return self.connection.execute(sql).to_arrow_table()

    def load(self, name: str, rows: pa.Table) -> None:
        """Create or replace a table with these rows."""
        quoted = '"' + name.replace('"', '""') + '"'
        with self._lock:
            self.connection.register("given", rows)
            self.connection.execute(f"CREATE OR REPLACE TABLE {quoted} AS FROM given")
            self.connection.unregister("given")

    def request(self, path: str, **params: str) -> SourceRequest:
        """Return the request of a dataset over a table."""
        given = {"flightsql_endpoint": self.uri, **LOGIN, **params}
        root = Path("/")
        return SourceRequest(TableName("t"), "flightsql", path, given, (), "read", root, root)

    def resolved(self, path: str) -> RemoteTable:
        """Return a table as its source resolves it."""
        return FlightSqlSource().resolve(self.request(path))


class _Login(flight.ServerMiddleware):  # type: ignore[misc] # pyarrow is untyped to us
    def __init__(self, token: str) -> None:
        self._token = token

    def sending_headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self._token}"}


class _Logins(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def __init__(self, server: FlightSqlServer) -> None:
        self._server = server

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> _Login:
        given = next(iter(headers.get("authorization", [])), "")
        kind, _, value = given.partition(" ")
        if kind == "Basic":
            pair = base64.b64decode(value + "==").decode()
            if pair == f"{LOGIN['flightsql_username']}:{LOGIN['flightsql_password']}":
                token = secrets.token_hex(8)
                self._server.tokens.add(token)
                return _Login(token)
        if kind == "Bearer" and value in self._server.tokens:
            return _Login(value)
        raise flight.FlightUnauthenticatedError("no login of hunter2 here")


class _NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def is_valid(self, token: bytes) -> str:
        return ""


class _Endpoint(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(self, server: FlightSqlServer, location: str, **options: Any) -> None:
        super().__init__(location, _NoHandshake(), middleware={"login": _Logins(server)}, **options)
        self._server = server

    def get_flight_info(self, _context: Any, descriptor: Any) -> Any:
        packed = AnyMessage.FromString(descriptor.command)
        query = messages.CommandStatementQuery.FromString(packed.value)
        self._server.sent.append(query.query)
        try:
            found = self._server.run(f"SELECT * FROM ({query.query}) LIMIT 0")
        except duckdb.Error as exc:
            raise flight.FlightInternalError(str(exc).splitlines()[0]) from exc
        ticket = messages.TicketStatementQuery(statement_handle=query.query.encode())
        wrapped = AnyMessage()
        wrapped.Pack(ticket)
        endpoint = flight.FlightEndpoint(wrapped.SerializeToString(), [])
        return flight.FlightInfo(found.schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        packed = AnyMessage.FromString(ticket.ticket)
        handle = messages.TicketStatementQuery.FromString(packed.value).statement_handle
        rows = self._server.run(handle.decode())
        return flight.GeneratorStream(rows.schema, self._batches(context, rows))

    def _batches(self, context: Any, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        server = self._server
        sent = 0
        try:
            while True:
                for batch in rows.to_batches(max_chunksize=100):
                    if sent == server.breaks_after:
                        raise flight.FlightUnavailableError("the server goes away")
                    if context.is_cancelled():
                        return
                    yield batch
                    server.has_begun.set()
                    sent += 1
                if not server.is_endless:
                    return
        finally:
            server.has_ended.set()


@contextmanager
def serving(tls: tuple[Path, Path] | None = None) -> Iterator[FlightSqlServer]:
    """Serve on a free port of this machine, with a certificate and its key for TLS."""
    server = FlightSqlServer()
    scheme = "grpc+tls" if tls else "grpc"
    pair = [(tls[0].read_text(), tls[1].read_text())] if tls else None
    endpoint = _Endpoint(server, f"{scheme}://127.0.0.1:0", tls_certificates=pair)
    server.uri = f"{scheme}://127.0.0.1:{endpoint.port}"
    thread = threading.Thread(target=endpoint.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        endpoint.shutdown()
        thread.join(10)
        server.connection.close()
