"""Turns requests away while the process stops; only the health check still answers."""

from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSAL = PlainTextResponse("Runtime is shutting down", 503, {"Connection": "close"})


class Stopping:
    """503 everywhere but `/health` once `is_stopping` says so."""

    def __init__(self, app: ASGIApp, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_stopping() and scope["path"] != "/health":
            await _REFUSAL(scope, receive, send)
            return
        await self._app(scope, receive, send)
