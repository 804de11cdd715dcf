"""The executor's own port: metrics, and the liveness and readiness probes."""

import threading
import time
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from caraway_core.errors import CarawayError
from caraway_core.protocols.wire import ActorStatus
from caraway_core.settings import Address
from caraway_executor.endpoints.metrics import CONTENT_TYPE

_TIMEOUT_S = 5
_LONGEST_WAIT_S = 300
_POLL_S = 0.1


@dataclass(slots=True)
class ActorAnswer:
    """The actor's latest state; None while it does not respond."""

    standing: ActorStatus | None = None

    def unready(self) -> str:
        """Return why this executor must not get work, or "" if it is ready."""
        match self.standing:
            case None:
                return "the executor has not joined its cluster"
            case ActorStatus(refusal=reason) if reason:
                return f"refused: {reason}"
            case ActorStatus(description=description) if description.is_draining:
                return "the executor is draining"
        return ""


class ProbeServer:
    """Serves probes and metrics from a thread; without an address it serves nothing."""

    def __init__(self, address: Address | None, seen: ActorAnswer) -> None:
        self._wanted = address
        self._seen = seen
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> Address | None:
        """The address that it listens on, or None."""
        if self._server is None:
            return None
        host, port = self._server.server_address[:2]
        return Address(str(host), int(port))

    def __enter__(self) -> Self:
        if self._wanted is not None:
            place = (self._wanted.host, self._wanted.port)
            try:
                self._server = ThreadingHTTPServer(place, partial(_Handler, self._seen))
            except OSError as exc:
                raise CarawayError(
                    f"cannot listen on {self._wanted}: {exc.strerror}; choose another address "
                    "with --metrics HOST:PORT"
                ) from exc
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
    timeout = _TIMEOUT_S
    protocol_version = "HTTP/1.1"

    # Typed Any: the base class takes the connection, its peer and the server.
    def __init__(self, seen: ActorAnswer, *connection: Any) -> None:
        self._seen = seen
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Serve /health, also with `?wait=SECONDS`, /v1/ready and /metrics."""
        match self.path.partition("?")[0]:
            case "/health":
                self._wait_until_ready()
                self._answer(200, b"ok")
            case "/v1/ready":
                reason = self._seen.unready()
                self._answer(503 if reason else 200, (reason or "ready").encode())
            case "/metrics":
                standing = self._seen.standing
                self._answer(200, standing.metrics if standing else b"", CONTENT_TYPE)
            case _:
                self._answer(404, b"not found; use /health, /v1/ready or /metrics")

    def _wait_until_ready(self) -> None:
        """Wait for as long as the parameter `wait` says, so that a start has no failed probe."""
        found = parse_qs(urlsplit(self.path).query).get("wait", ["0"])[-1]
        wait_s = min(int(found), _LONGEST_WAIT_S) if found.isdecimal() else 0
        end = time.monotonic() + wait_s
        while self._seen.unready() and time.monotonic() < end:
            time.sleep(_POLL_S)

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes arrive every few seconds."""
