"""What an executor's own port serves: metrics, and the two questions that a kubelet asks."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from caraway_core.protocols.fleet import Description
from caraway_core.protocols.wire import Standing
from caraway_core.settings import Address

_TIMEOUT_S = 5


@dataclass(slots=True)
class Seen:
    """The actor's latest answer; None while it does not answer."""

    standing: Standing | None = None

    def unready(self) -> str:
        """Why no work should come here; empty if it may."""
        match self.standing:
            case None:
                return "the executor has not joined its cluster"
            case Standing(refusal=reason) if reason:
                return f"refused: {reason}"
            case Standing(description=description) if description.is_draining:
                return "the executor is draining"
        return ""


class ProbeServer:
    """Serves on a thread; without an address it serves nothing."""

    def __init__(self, address: Address | None, seen: Seen) -> None:
        self._wanted = address
        self._seen = seen
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> Address | None:
        if self._server is None:
            return None
        host, port = self._server.server_address[:2]
        return Address(str(host), int(port))

    def __enter__(self) -> Self:
        if self._wanted is not None:
            seen, registry = self._seen, CollectorRegistry()
            registry.register(_Numbers(seen))

            class Handler(_Handler):
                pass

            Handler.seen, Handler.registry = seen, registry
            self._server = ThreadingHTTPServer((self._wanted.host, self._wanted.port), Handler)
            self._server.daemon_threads = True
            threading.Thread(target=self._server.serve_forever, name="probes", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    seen: Seen
    registry: CollectorRegistry
    timeout = _TIMEOUT_S
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/health":
                self._answer(200, b"ok")
            case "/v1/ready":
                reason = self.seen.unready()
                self._answer(503 if reason else 200, (reason or "ready").encode())
            case "/metrics":
                self._answer(200, generate_latest(self.registry), "text/plain; version=0.0.4")
            case _:
                self._answer(404, b"not here: /health, /v1/ready and /metrics are")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Probes come every few seconds; none is worth a line."""


class _Numbers(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        standing = self._seen.standing
        yield GaugeMetricFamily(
            "caraway_executor_ready",
            "Whether the executor may be given work.",
            0 if self._seen.unready() else 1,
        )
        if standing is not None:
            yield from _of(standing.description)


def _of(told: Description) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "caraway_executor_active_tasks", "Statements and tasks under way.", told.active_tasks
    )
    yield CounterMetricFamily(
        "caraway_executor_finished_tasks", "Statements and tasks that ended.", told.finished_tasks
    )
    yield CounterMetricFamily(
        "caraway_executor_failed_tasks", "Statements and tasks that failed.", told.failed_tasks
    )
    yield GaugeMetricFamily(
        "caraway_executor_memory_used_bytes", "Memory of its process.", told.memory_used_bytes
    )
    yield GaugeMetricFamily(
        "caraway_executor_memory_limit_bytes", "Memory for statements.", told.memory_bytes
    )
