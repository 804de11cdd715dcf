"""A server in a thread whose answers are functions of its requests, and which notes them."""

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request as it arrived. The names of headers are in lower case."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer: a value that is sent as JSON, or bytes as they are."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else json.dumps(self.value).encode()


class ApiServer(ThreadingHTTPServer):
    """Answers by path; `requests` are those that arrived."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Callable[[ApiRequest], ApiAnswer]] = {}
        self.requests: list[ApiRequest] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client may leave before the end of an answer."""

    def say(self, path: str, value: Any, **headers: str) -> None:
        """Give one answer to all requests for a path."""
        self.answers[path] = lambda _: ApiAnswer(value, headers=headers)


def _unknown(_: ApiRequest) -> ApiAnswer:
    return ApiAnswer({}, 404)


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length", "0"))
        request = ApiRequest(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length).decode(),
        )
        self.server.requests.append(request)
        answer = self.server.answers.get(parts.path, _unknown)(request)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


def pages(rows: Sequence[Any], most: int = 400) -> Callable[[ApiRequest], ApiAnswer]:
    """Answer with some rows from an offset."""

    def answer(request: ApiRequest) -> ApiAnswer:
        at = int(request.params.get("offset", "0"))
        return ApiAnswer(rows[at : at + most])

    return answer


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    """Run a server until the end of the context."""
    with ApiServer() as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(_WAIT_S)
