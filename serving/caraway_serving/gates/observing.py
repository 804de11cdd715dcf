"""Creates a span for each request, and counts and times requests by route."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_core.process.logs import trace_id
from caraway_serving import spans
from caraway_serving.scopes import SPAN
from caraway_serving.tallies import ApiTallies

logger = logging.getLogger(__name__)


class ObservationGate:
    """The outermost gate, so that rejected requests are counted as well."""

    def __init__(self, app: ASGIApp, tallies: ApiTallies) -> None:
        self._app = app
        self._tallies = tallies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        span = spans.start(headers.get(b"traceparent", b"").decode("latin-1"))
        scope[SPAN] = span
        token = trace_id.set(span.trace_id)
        status = 500

        async def send_traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-trace-id", span.trace_id.encode()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_traced)
        finally:
            self._count(scope, status, (time.perf_counter() - started) * 1000)
            trace_id.reset(token)

    def _count(self, scope: Scope, status: int, duration_ms: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other")
        # Clients choose the method: one that the route does not have gets no series of its own.
        is_known = scope["method"] in (getattr(route, "methods", None) or ())
        method = scope["method"] if is_known else "other"
        self._tallies.http_requests[method, path, str(status)] += 1
        self._tallies.http_durations.add((method, path, f"{status // 100}xx"), duration_ms)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "request",
                extra={"method": method, "path": path, "status": status,
                       "duration_ms": round(duration_ms, 2)},
            )  # fmt: skip
