"""A provider of models that answers as a test says, on a real port, in a thread."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    body: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[ProviderRequest], ProviderAnswer]


class JsonProvider(ThreadingHTTPServer):
    """Answers with `answer`, unless answers are left in `first`; keeps all requests."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.first: list[ProviderAnswer] = []
        self.requests: list[ProviderRequest] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients may go away at any time."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: JsonProvider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ProviderRequest(
            self.command, self.path, headers, json.loads(sent) if sent else None
        )
        self.server.requests.append(request)
        first = self.server.first
        answer = first.pop(0) if first else self.server.answer(request)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def json_provider(answer: Answer) -> Iterator[JsonProvider]:
    """Serve until the block ends."""
    with JsonProvider(answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), name="provider")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def vector_of(text: str | list[int], dimensions: int = 4) -> list[float]:
    """Return a vector that depends on the length of a text."""
    return [float(len(text)), 1.0, *([0.0] * (dimensions - 2))]


def openai_embeddings(request: ProviderRequest) -> ProviderAnswer:
    """Answer as OpenAI does, in the reverse order."""
    texts = request.body["input"]
    dimensions = request.body.get("dimensions", 4)
    items = [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dimensions)}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": sum(map(len, texts)), "total_tokens": 0}
    return ProviderAnswer({"object": "list", "data": items[::-1], "usage": usage})
