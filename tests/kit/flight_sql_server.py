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
        self._schemas: dict[str, pa.Schema] = {}

    def get_flight_info(self, _context: Any, descriptor: Any) -> Any:
        packed = AnyMessage.FromString(descriptor.command)
        metadata = _metadata(packed)
        sql, schema = metadata or ("", None)
        if metadata is None:
            sql = messages.CommandStatementQuery.FromString(packed.value).query
            self._server.sent.append(sql)
        try:
            found = self._server.run(f"SELECT * FROM ({sql}) LIMIT 0")
        except duckdb.Error as exc:
            raise flight.FlightInternalError(str(exc).splitlines()[0]) from exc
        ticket = messages.TicketStatementQuery(statement_handle=sql.encode())
        wrapped = AnyMessage()
        wrapped.Pack(ticket)
        endpoint = flight.FlightEndpoint(wrapped.SerializeToString(), [])
        self._schemas[sql] = schema or found.schema
        return flight.FlightInfo(schema or found.schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        packed = AnyMessage.FromString(ticket.ticket)
        handle = messages.TicketStatementQuery.FromString(packed.value).statement_handle
        rows = self._server.run(handle.decode()).cast(self._schemas[handle.decode()])
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


def _metadata(packed: AnyMessage) -> tuple[str, pa.Schema] | None:
    """Return the query for what a message of metadata asks for; None: it is another message."""
    if packed.Is(messages.CommandGetCatalogs.DESCRIPTOR):
        sql = "SELECT DISTINCT catalog_name FROM information_schema.schemata ORDER BY 1"
        return sql, _strings("catalog_name")
    if packed.Is(messages.CommandGetDbSchemas.DESCRIPTOR):
        schemas = messages.CommandGetDbSchemas.FromString(packed.value)
        sql = (
            "SELECT catalog_name, schema_name AS db_schema_name FROM information_schema.schemata"
            f" WHERE {_matching(schemas, 'catalog_name', 'schema_name')} ORDER BY 1, 2"
        )
        return sql, _strings("catalog_name?", "db_schema_name")
    if packed.Is(messages.CommandGetTables.DESCRIPTOR):
        tables = messages.CommandGetTables.FromString(packed.value)
        assert not tables.include_schema
        sql = (
            "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name, "
            "table_type FROM information_schema.tables "
            f"WHERE {_matching(tables, 'table_catalog', 'table_schema')} ORDER BY 1, 2, 3"
        )
        return sql, _strings("catalog_name?", "db_schema_name?", "table_name", "table_type")
    return None


def _strings(*names: str) -> pa.Schema:
    """Return columns of texts; those with a question mark may be NULL."""
    return pa.schema([pa.field(each.rstrip("?"), pa.string(), "?" in each) for each in names])


def _matching(message: Any, catalog: str, schema: str) -> str:
    tests = ["TRUE"]
    if message.HasField("catalog"):
        tests.append(f"{catalog} = {_text(message.catalog)}")
    if message.HasField("db_schema_filter_pattern"):
        tests.append(f"{schema} LIKE {_text(message.db_schema_filter_pattern)}")
    return " AND ".join(tests)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


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
