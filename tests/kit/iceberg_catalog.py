"""A REST catalog of Iceberg over the tables of a DuckDB in memory, in a thread of the tests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import duckdb
import pyarrow as pa

from tests.kit import iceberg_tables

TOKEN = "t0ken-of-hunter2"
CREDENTIAL = "reader:hunter2"
PREFIX = "warehouse"
_LIST = "SELECT {} FROM information_schema.tables WHERE table_catalog = 'memory'"


@dataclass
class IcebergCatalogServer:
    """The tables that are served; `config` is given out with each of them."""

    folder: Path
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    config: dict[str, str] = field(default_factory=dict)
    url: str = ""
    loads: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _written: dict[tuple[str, str], tuple[pa.Table, dict[str, Any]]] = field(default_factory=dict)

    def run(self, *statements: str) -> None:
        """Run statements over the tables."""
        with self._lock:
            for each in statements:
                self.connection.execute(each)

    def answer(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """Return the answer to a GET; None: there is nothing of that name."""
        parts = [unquote(each) for each in path.strip("/").split("/")]
        with self._lock:
            match parts:
                case ["v1", "config"]:
                    return {"defaults": {}, "overrides": {"prefix": PREFIX}}
                case ["v1", "warehouse", "namespaces"]:
                    return self._namespaces(query)
                case ["v1", "warehouse", "namespaces", schema, "tables"]:
                    return self._tables(schema, query)
                case ["v1", "warehouse", "namespaces", schema, "tables", table]:
                    return self._load(schema, table)
        return None

    def _namespaces(self, query: dict[str, list[str]]) -> dict[str, Any]:
        if "parent" in query:
            return {"namespaces": []}
        sql = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'memory'"
        return {"namespaces": [[name] for (name,) in self.connection.execute(sql).fetchall()]}

    def _tables(self, schema: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """Return a page of one table."""
        known = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?"
        if not self.connection.execute(known, [schema]).fetchall():
            return None
        sql = _LIST.format("table_name") + " AND table_schema = ? ORDER BY 1"
        names = [name for (name,) in self.connection.execute(sql, [schema]).fetchall()]
        start = int(query.get("pageToken", ["0"])[0] or 0)
        page = [{"namespace": [schema], "name": name} for name in names[start : start + 1]]
        more = {"next-page-token": str(start + 1)} if start + 1 < len(names) else {}
        return {"identifiers": page, **more}

    def _load(self, schema: str, table: str) -> dict[str, Any] | None:
        self.loads.append(table)
        quoted = ".".join('"' + each.replace('"', '""') + '"' for each in (schema, table))
        try:
            rows = self.connection.execute(f"SELECT * FROM {quoted}").to_arrow_table()
        except duckdb.CatalogException:
            return None
        before = self._written.get((schema, table))
        if before is None or not before[0].equals(rows):
            name = f"t{len(self.loads)}"
            iceberg_tables.create(self.folder, rows, name)
            document = json.loads(iceberg_tables.newest(self.folder / name).read_text())
            self._written[schema, table] = rows, document
        return {"metadata": self._written[schema, table][1], "config": self.config}


@contextmanager
def serving(folder: Path) -> Iterator[IcebergCatalogServer]:
    """Serve on a free port of this machine."""
    catalog = IcebergCatalogServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                return self._reply(401, {})
            url = urlsplit(self.path)
            found = catalog.answer(url.path, parse_qs(url.query, keep_blank_values=True))
            return self._reply(404 if found is None else 200, found or {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            given = parse_qs(body)
            pair = f"{given['client_id'][0]}:{given['client_secret'][0]}"
            if self.path != "/v1/oauth/tokens" or pair != CREDENTIAL:
                return self._reply(401, {"error": "invalid_client"})
            return self._reply(200, {"access_token": TOKEN, "token_type": "bearer"})

        def _reply(self, status: int, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    catalog.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield catalog
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
        catalog.connection.close()
