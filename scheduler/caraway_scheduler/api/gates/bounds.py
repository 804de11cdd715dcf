"""Refuses bodies that announce more bytes than may come, before they are read."""

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_scheduler.api import bodies

_PROBE_BYTES = 128 * 1024
_PROBES = ("/health", "/v1/ready")


class Bounds:
    """Probes take next to nothing, other routes what the settings say."""

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            limit = _PROBE_BYTES if scope["path"] in _PROBES else self._limit_bytes
            declared = Headers(scope=scope).get("content-length", "")
            if declared.isdigit() and int(declared) > limit:
                error = bodies.too_large(limit)
                await PlainTextResponse(error.message, error.status)(scope, receive, send)
                return
        await self._app(scope, receive, send)
