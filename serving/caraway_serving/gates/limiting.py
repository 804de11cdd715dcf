"""Rejects requests that are too many, too large or too late, and ends those that take too long."""

import asyncio
from typing import Protocol

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_serving import bodies, limits
from caraway_serving.errors import RefusedRequestError
from caraway_serving.failures import STOPPING, ErrorShapes
from caraway_serving.limits import InForce
from caraway_serving.room import BodyMemory, Lease
from caraway_serving.scopes import LEASE
from caraway_serving.tallies import ApiTallies

_PROBE_BYTES = 128 * 1024
_PROBES = ("/health", "/v1/ready")


class LimitGate:
    """Runs after authentication, so that requests without a key do not use up the limit."""

    def __init__(
        self, app: ASGIApp, in_force: InForce, tallies: ApiTallies, shapes: ErrorShapes
    ) -> None:
        self._app = app
        self._shapes = shapes
        self._in_force = in_force
        self._tallies = tallies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        bucket = self._in_force.bucket
        if wait_s := bucket.take_token():
            self._tallies.limited_requests["api_rps",] += 1
            text, wait = limits.too_many(bucket.rate or 0), limits.retry_after(wait_s)
            refusal = RefusedRequestError(429, text, {"retry-after": wait})
            await self._shapes.answer(scope["path"], refusal)(scope, receive, send)
            return
        timeout_s = self._in_force.request_timeout_s
        if timeout_s is None:
            await self._app(scope, receive, send)
        else:
            await self._timed(timeout_s, scope, receive, send)

    async def _timed(self, timeout_s: float, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            async with asyncio.timeout(timeout_s) as deadline:
                await self._app(scope, receive, watched)
        except TimeoutError:
            if not deadline.expired():
                raise
            self._tallies.limited_requests["request_timeout_secs",] += 1
            if has_begun:
                return  # The server closes the connection of an incomplete response.
            text = (
                f"the request took longer than the {timeout_s:g} s that the limit "
                "request_timeout_secs allows; ask for less, or submit it to /v1/queries"
            )
            refusal = RefusedRequestError(504, text)
            await self._shapes.answer(scope["path"], refusal)(scope, receive, send)


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
