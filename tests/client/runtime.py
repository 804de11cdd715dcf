"""A fake runtime that sends prepared responses and records the requests."""

import contextlib
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from caraway.client import Client
from caraway_core.concurrency.clocks import Sleep

WAIT_S = 60.0


def arrow_body(rows: list[dict[str, Any]] | pa.Table) -> bytes:
    """Return rows as the body of a response in Arrow."""
    table = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Asked:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A prepared response. With `breaks_off`, the connection closes before the body is complete."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_off: bool = False


# Writes the response itself, for responses that never end.
Script = Callable[[BaseHTTPRequestHandler], None]


class FakeRuntime:
    """Sends the responses prepared for each route, and repeats the last one."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[str, list[Answer | Script]] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.runtime = self
        self._server.tls = tls
        scheme = "https" if tls else "http"
        self.endpoint = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        # The default poll interval of half a second would dominate the time of most tests.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def answers(self, route: str, *answers: Answer | Script) -> None:
        """Prepare the responses of a route such as `GET /health`."""
        self._answers[route] = list(answers)

    def answer_to(self, asked: Asked) -> Answer | Script:
        self.asked.append(asked)
        prepared = self._answers.get(f"{asked.method} {asked.path}", [Answer(404, b"no route")])
        return prepared.pop(0) if len(prepared) > 1 else prepared[0]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(WAIT_S)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    runtime: FakeRuntime
    tls: ssl.SSLContext | None
    daemon_threads = True
    block_on_close = False

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the thread of the connection, so that a failed handshake affects only that connection.
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            with self.tls.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._play()

    def do_POST(self) -> None:
        self._play()

    def do_PATCH(self) -> None:
        self._play()

    def do_PUT(self) -> None:
        self._play()

    def do_DELETE(self) -> None:
        self._play()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _play(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): content for name, content in self.headers.items()}
        asked = Asked(self.command, url.path, dict(parse_qsl(url.query)), headers, body)
        answer = self.server.runtime.answer_to(asked)
        if isinstance(answer, Answer):
            self._send(answer)
        else:
            self.close_connection = True
            answer(self)

    def _send(self, answer: Answer) -> None:
        self.close_connection = True
        self.send_response(answer.status)
        for name, content in answer.headers.items():
            self.send_header(name, content)
        missing = 10 if answer.breaks_off else 0
        self.send_header("Content-Length", str(len(answer.body) + missing))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[FakeRuntime]:
    """Run a fake runtime until the block ends."""
    runtime = FakeRuntime(tls)
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop()


@contextmanager
def nobody() -> Iterator[str]:
    """Yield an endpoint that refuses connections: its port is bound, but nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


class Pauses:
    """A fake sleep that records the durations."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def pausing(sleep: Sleep, *given: str, **named: Any) -> Client:
    """Return a client that calls `sleep` in place of every wait."""
    kind = type("PausingClient", (Client,), {"_sleep": staticmethod(sleep)})
    made: Client = kind(*given, **named)
    return made
