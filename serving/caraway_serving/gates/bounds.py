"""Limits the size of each request body, and the memory of all bodies together."""

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_serving import bodies
from caraway_serving.failures import ErrorShapes
from caraway_serving.room import BodyMemory, Lease
from caraway_serving.scopes import LEASE

_PROBE_BYTES = 128 * 1024
_PROBES = ("/health", "/v1/ready")


class BodyGate:
    """Applies a small limit to health probes, and the configured limits to other routes."""

    def __init__(
        self, app: ASGIApp, limit_bytes: int, room: BodyMemory, shapes: ErrorShapes
    ) -> None:
        self._app = app
        self._shapes = shapes
        self._limit_bytes = limit_bytes
        self._room = room
        self._unfolded = BodyMemory(room.capacity_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = _PROBE_BYTES if scope["path"] in _PROBES else self._limit_bytes
        if bodies.declared_bytes(HTTPConnection(scope)) > limit:
            await self._shapes.answer(scope["path"], bodies.too_large(limit))(scope, receive, send)
            return
        lease = scope[LEASE] = Lease(self._room, self._unfolded)
        try:
            await self._app(scope, receive, send)
        finally:
            lease.end()
