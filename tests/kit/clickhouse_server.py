"""ClickHouse behind HTTP: chdb in a process of its own, with logins and a KILL QUERY.

`python -m tests.kit.clickhouse_server FD` serves on a free port, and writes it to a pipe.
"""

import base64
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.clickhouse.source import ClickhouseSource

USER, PASSWORD = "reader", "hunter2"
_OWN_PARAMS = frozenset({
    "query", "database", "query_id", "session_id", "default_format", "compress",
    "enable_http_compression", "client_protocol_version", "http_headers_progress_interval_ms",
    "send_progress_in_http_headers", "wait_end_of_query", "role", "session_timeout",
    "cancel_http_readonly_queries_on_client_close", "date_time_input_format",
})  # fmt: skip
_FORMAT = re.compile(r"\s+FORMAT\s+(\w+)\s*;?\s*$")
_CODE = re.compile(r"Code: (\d+)")
_KILL = re.compile(r"KILL QUERY WHERE query_id = '([0-9a-f-]+)'")
_START_S = 60
_TYPES = {
    pa.int8(): "Int8", pa.int16(): "Int16", pa.int32(): "Int32", pa.int64(): "Int64",
    pa.uint32(): "UInt32", pa.uint64(): "UInt64", pa.float32(): "Float32", pa.float64(): "Float64",
    pa.bool_(): "Bool", pa.date32(): "Date32", pa.string(): "String",
    pa.timestamp("us"): "DateTime64(6, 'UTC')", pa.timestamp("us", "UTC"): "DateTime64(6, 'UTC')",
}  # fmt: skip


class ClickhouseServer:
    """A server in a child process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.port, self._process, self._folder = port, process, folder
        self._files = 0

    def run(self, sql: str) -> str:
        """Run a statement; return its answer as text."""
        login = (USER, PASSWORD)
        answer = httpx.post(f"http://127.0.0.1:{self.port}/", content=sql, auth=login, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.text

    def load(self, name: str, rows: pa.Table) -> None:
        """Create or replace a table with these rows."""
        columns = ", ".join(
            f"{quoted(each.name)} Nullable({column_type(each.type)})" for each in rows.schema
        )
        self.run(f"DROP TABLE IF EXISTS {quoted(name)}")
        self.run(f"CREATE TABLE {quoted(name)} ({columns}) ENGINE = Memory")
        self._files += 1
        file = self._folder / f"{self._files}.parquet"
        pq.write_table(rows, file)
        if len(rows):
            self.run(f"INSERT INTO {quoted(name)} SELECT * FROM file('{file}', 'Parquet')")

    def kill(self) -> None:
        """End it, as a power failure does."""
        self._process.kill()
        self._process.wait()

    def request(self, path: str, **params: str) -> SourceRequest:
        """Return the request of a dataset over a table."""
        given = {
            "clickhouse_host": "127.0.0.1",
            "clickhouse_http_port": str(self.port),
            "clickhouse_user": USER,
            "clickhouse_pass": PASSWORD,
            "clickhouse_secure": "false",
            **params,
        }
        root = Path("/")
        return SourceRequest(TableName("t"), "clickhouse", path, given, (), "read", root, root)

    def resolved(self, path: str, **params: str) -> RemoteTable:
        """Return a table as its source resolves it."""
        return ClickhouseSource().resolve(self.request(path, **params))


def with_params(request: SourceRequest, params: dict[str, str]) -> SourceRequest:
    """Return a request with other params."""
    return replace(request, params=params)


def quoted(name: str) -> str:
    """Return a name as ClickHouse reads it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '""') + '"'


def column_type(type_: pa.DataType) -> str | None:
    """Return ClickHouse's name of a type, or None if no type has the same values."""
    if pa.types.is_decimal128(type_):
        return f"Decimal({type_.precision}, {type_.scale})"
    return _TYPES.get(type_)


@contextmanager
def serving() -> Iterator[ClickhouseServer]:
    """Start a server; skip the test where chdb is not installed."""
    if find_spec("chdb") is None:
        pytest.skip("NOT TESTED: ClickHouse is missing: pip install chdb")
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.clickhouse_server", str(writer)],
                pass_fds=(writer,), stdout=log, stderr=log,
            )  # fmt: skip
        os.close(writer)
        try:
            with os.fdopen(reader) as pipe:
                line = pipe.readline()
            assert line, (Path(folder) / "log").read_text()
            yield ClickhouseServer(process, int(line), Path(folder))
        finally:
            process.kill()
            process.wait(_START_S)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    session: Any = None
    lock = threading.Lock()
    changed = threading.Condition()
    killed: ClassVar[set[str]] = set()
    running: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def log_message(self, *_arguments: object) -> None:
        pass

    def _answer(self, body: bytes) -> None:
        params = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        pair = base64.b64decode(self.headers.get("Authorization", "").partition(" ")[2]).decode()
        if pair != f"{USER}:{PASSWORD}":
            said = "default: Authentication failed: password is incorrect (AUTHENTICATION_FAILED)"
            return self._fail(f"Code: 516. DB::Exception: {said}", 403)
        sql = "\n".join(filter(None, (params.pop("query", ""), body.decode())))
        if sql.strip() == "RUNNING":
            return self._send(",".join(sorted(self.running)).encode())
        if found := _KILL.search(sql):
            with self.changed:
                self.killed.add(found[1])
                self.changed.notify_all()
            return self._send(b"")
        if "sleep(" in sql:
            return self._wait(params.get("query_id", ""))
        format_ = params.get("default_format", "TabSeparated")
        if found := _FORMAT.search(sql):
            sql, format_ = sql[: found.start()], found[1]
        if sql.lstrip().upper().startswith(("SELECT", "WITH")):
            settings = {name: value for name, value in params.items() if name not in _OWN_PARAMS}
            sql += (
                "\nSETTINGS " + ", ".join(f"{name} = '{value}'" for name, value in settings.items())
                if settings
                else ""
            )
        try:
            if "numbers(" in sql and format_ == "ArrowStream":
                return self._flow(sql, params.get("query_id", ""))
            with self.lock:
                self.session.query(f"USE {quoted(params.get('database') or 'default')}")
                answer = self.session.query(sql, format_).bytes()
        except Exception as exc:
            return self._fail(str(exc), 500)
        self._send(answer or b"")

    def _wait(self, query_id: str) -> None:
        """Answer when somebody kills the query."""
        self.running.add(query_id)
        with self.changed:
            self.changed.wait_for(lambda: query_id in self.killed, _START_S)
        self.running.discard(query_id)
        self._fail("Code: 394. DB::Exception: Query was cancelled. (QUERY_WAS_CANCELLED)", 500)

    def _flow(self, sql: str, query_id: str) -> None:
        """Send the rows as they come, until somebody kills the query or goes away."""
        with self.lock:
            stream = self.session.send_query(sql, "ArrowStream")
            self.running.add(query_id)
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            writer: Any = None
            sink = io.BytesIO()
            try:
                for chunk in stream:
                    if query_id in self.killed:
                        return
                    for batch in pa.ipc.open_stream(chunk.bytes()):
                        writer = writer or pa.ipc.new_stream(sink, batch.schema)
                        writer.write_batch(batch)
                    self._chunk(sink.getvalue())
                    sink.seek(0)
                    sink.truncate()
                writer.close()
                self._chunk(sink.getvalue())
                self._chunk(b"")
            except OSError:
                pass
            finally:
                self.close_connection = True
                stream.cancel()
                self.running.discard(query_id)

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def _send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def _fail(self, said: str, status: int) -> None:
        found = _CODE.search(said)
        code = found[1] if found else "1"
        self._send(said.encode(), status, X_ClickHouse_Exception_Code=code)


def _main() -> None:
    from chdb import session

    _Handler.session = session.Session()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    with os.fdopen(int(sys.argv[1]), "w") as pipe:
        pipe.write(f"{server.server_address[1]}\n")
    server.serve_forever()


if __name__ == "__main__":
    _main()
