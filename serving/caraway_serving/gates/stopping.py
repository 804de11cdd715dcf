"""Rejects requests during shutdown, except for the health check."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_serving.failures import STOPPING, ErrorShapes


class StopGate:
    """Returns 503 for all routes except `/health` once `is_stopping` is true."""

    def __init__(self, app: ASGIApp, is_stopping: Callable[[], bool], shapes: ErrorShapes) -> None:
        self._app = app
        self._shapes = shapes
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_stopping() and scope["path"] != "/health":
            await self._shapes.answer(scope["path"], STOPPING)(scope, receive, send)
            return
        await self._app(scope, receive, send)
