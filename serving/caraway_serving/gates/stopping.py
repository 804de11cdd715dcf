"""Rejects requests during shutdown, except for the health check."""

from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from caraway_serving.failures import STOPPING, ErrorShapes


class Stoppable(Protocol):
    """The runtime whose requests are rejected while it stops."""

    @property
    def is_stopping(self) -> bool:
        """True once it takes no more requests."""
        ...


class StopGate:
    """Returns 503 for all routes except `/health` while the runtime stops."""

    def __init__(self, app: ASGIApp, runtime: Stoppable, shapes: ErrorShapes) -> None:
        self._app = app
        self._shapes = shapes
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._runtime.is_stopping and scope["path"] != "/health":
            await self._shapes.answer(scope["path"], STOPPING)(scope, receive, send)
            return
        await self._app(scope, receive, send)
