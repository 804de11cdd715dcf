"""A REST catalog over a catalog of PyIceberg, which checks and carries out commits, in a thread."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest

Refusal = Callable[[str], int | None]


@dataclass
class IcebergRestServer:
    """A served catalog. `before` and `after` may name the status of a commit in its place."""

    catalog: Catalog
    config: dict[str, str] = field(default_factory=dict)
    """What is given out with each table."""
    url: str = ""
    before: Refusal = lambda _table: None
    """Called before a commit; a status means that it is not carried out."""
    after: Refusal = lambda _table: None
    """Called after a commit; a status is the answer, although it is carried out."""
    is_away: bool = False
    """True has it refuse to show tables."""
    commits: list[dict[str, Any]] = field(default_factory=list)
    _staged: dict[tuple[str, str], Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, parts: tuple[str, str]) -> tuple[int, dict[str, Any]]:
        """Return a table."""
        if self.is_away:
            return 503, {}
        try:
            table = self.catalog.load_table(parts)
        except NoSuchTableError:
            return 404, {}
        document = json.loads(table.metadata.model_dump_json(exclude_none=True, by_alias=True))
        location = table.metadata_location
        return 200, {"metadata": document, "metadata-location": location, "config": self.config}

    def stage(self, namespace: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return a table as it would be created."""
        name = (namespace, body["name"])
        if self.catalog.table_exists(name):
            return 409, {}
        assert body["stage-create"]
        schema = Schema.model_validate(body["schema"])
        staged = self.catalog._create_staged_table(name, schema, properties=body["properties"])
        self._staged[name] = staged
        document = json.loads(staged.metadata.model_dump_json(exclude_none=True, by_alias=True))
        return 200, {"metadata": document, "config": self.config}

    def names(self, parts: list[str]) -> tuple[int, dict[str, Any]]:
        """Return a list of namespaces, or of tables."""
        if len(parts) == len(("v1", "namespaces")):
            return 200, {"namespaces": [list(each) for each in self.catalog.list_namespaces()]}
        listed = self.catalog.list_tables(parts[2])
        return 200, {"identifiers": [{"namespace": [a], "name": b} for a, b in listed]}

    def drop(self, parts: tuple[str, str]) -> tuple[int, dict[str, Any]]:
        """Take a table out of the catalog."""
        if not self.catalog.table_exists(parts):
            return 404, {}
        self.catalog.drop_table(parts)
        return 204, {}

    def commit(self, parts: tuple[str, str], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Carry out a commit, if its requirements hold."""
        with self._lock:
            if (status := self.before(parts[1])) is not None:
                return status, {}
            self.commits.append(body)
            names = {"identifier": {"namespace": parts[:1], "name": parts[1]}}
            request = CommitTableRequest.model_validate({**body, **names})
            try:
                table = self._staged.pop(parts, None) or self.catalog.load_table(parts)
                self.catalog.commit_table(table, request.requirements, request.updates)
            except CommitFailedException as exc:
                return 409, {"error": {"message": str(exc), "code": 409}}
            if (status := self.after(parts[1])) is not None:
                return status, {}
        return self.load(parts)


@contextmanager
def serving(catalog: Catalog, config: dict[str, str] | None = None) -> Iterator[IcebergRestServer]:
    """Serve on a free port of this machine."""
    served = IcebergRestServer(catalog, config or {})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/v1/config"):
                return self._reply(200, {"defaults": {}, "overrides": {}})
            parts = self._parts()
            if parts[-1] in ("namespaces", "tables"):
                return self._reply(*served.names(parts))
            self._reply(*served.load(self._table()))

        def do_DELETE(self) -> None:
            assert parse_qs(urlsplit(self.path).query) == {"purgeRequested": ["false"]}
            self._reply(*served.drop(self._table()))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            parts = self._parts()
            if parts[-1] == "tables":
                return self._reply(*served.stage(parts[2], body))
            self._reply(*served.commit(self._table(), body))

        def _parts(self) -> list[str]:
            return [unquote(each) for each in urlsplit(self.path).path.strip("/").split("/")]

        def _table(self) -> tuple[str, str]:
            _, _, namespace, _, table = self._parts()
            return namespace, table

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
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
