"""Turns requests away while the process stops; only the health check still answers."""

from collections.abc import Callable

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_scheduler.api.failures import is_json_error

_TEXT = "Runtime is shutting down"
_HEADERS = {"Connection": "close", "Retry-After": "2"}
_REFUSAL = PlainTextResponse(_TEXT, 503, _HEADERS)
_JSON_REFUSAL = JSONResponse({"error": _TEXT}, 503, _HEADERS)


class Stopping:
    """503 everywhere but `/health` once `is_stopping` says so."""

    def __init__(self, app: ASGIApp, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_stopping() and scope["path"] != "/health":
            refusal = _JSON_REFUSAL if is_json_error(scope["path"]) else _REFUSAL
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
