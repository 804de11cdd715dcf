"""Counts the requests of an instance for its own metrics, which have nothing of organizations."""

import time

from prometheus_client import Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Tally:
    """The metrics of one instance."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        labels = ("method", "operation", "status")
        self.requests = Counter(
            "caraway_management_requests", "Requests", labels, registry=self.registry
        )
        self.durations = Histogram(
            "caraway_management_request_seconds", "Time of requests", ("method", "operation"),
            buckets=_BOUNDS_S, registry=self.registry,
        )  # fmt: skip


class TallyGate:
    """Counts requests by their operations, never by their paths: those are without bound."""

    def __init__(self, app: ASGIApp, tally: Tally) -> None:
        self._app = app
        self._tally = tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            operation = getattr(scope.get("route"), "name", "none")
            self._tally.requests.labels(method, operation, str(status)).inc()
            self._tally.durations.labels(method, operation).observe(time.perf_counter() - began)
