"""The gates of every request: its id, its client, limits and rules of its body, refused changes."""

import logging
import re
import time
import uuid
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_core.errors import CarawayError
from caraway_management.api import failures
from caraway_management.api.access import Change, activity
from caraway_management.domain import proxies
from caraway_management.domain.proxies import Network
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services
from caraway_serving import parsing
from caraway_serving.errors import RefusedRequestError
from caraway_serving.replaying import replayed

logger = logging.getLogger(__name__)
MOST_BODY_BYTES = 1024 * 1024
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
MOST_VALUES = 50_000
"""The values of a body, in all its lists and objects."""
_TOKENS = "/api/oauth/token"
"""Reads its body itself: its errors have the form of RFC 6749."""


class RequestIdGate:
    """Gives each request an id, logs it, and answers errors that were not caught before."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.headers.get("x-request-id", "")
        id_ = given if _ID.fullmatch(given) else uuid.uuid4().hex
        request.state.request_id = id_
        began, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).extend(
                    [(b"x-request-id", id_.encode()), (b"x-content-type-options", b"nosniff")]
                )
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        # The top of a request: any other exception is a bug, and users get no traceback.
        except Exception:
            logger.exception("request failed", extra={"request": id_, "path": scope["path"]})
            if not status:
                await failures.answer_bug(request)(scope, receive, send_with_id)
        finally:
            logger.debug(
                "request",
                extra={
                    "request": id_,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round((time.perf_counter() - began) * 1_000, 1),
                },
            )


class BodyGate:
    """Refuses bodies of more than 1 MiB, declared or not."""

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BODY_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Request(scope).headers.get("content-length", "0")
        received, has_started = 0, False

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most_bytes:
                raise _TooLargeError(self._most_bytes)
            return message

        async def send_noted(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        if not declared.isdecimal() or int(declared) <= self._most_bytes:
            try:
                await self._app(scope, receive_bounded, send_noted)
                return
            except _TooLargeError:
                if has_started:
                    raise
        await JSONResponse({"error": _too_large(self._most_bytes)}, 413)(scope, receive, send)


class _TooLargeError(HTTPException):
    """More bytes arrived than a body may have. The application answers it, if it is reading."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(413, _too_large(most_bytes))


def _too_large(most_bytes: int) -> str:
    return f"the body has more than {most_bytes} bytes"


class RecordGate:
    """Records changes that are refused in the activity log, if the caller is known."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READS:
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self._app(scope, receive, send_noted)
        request = Request(scope)
        if 400 <= status < 500 and hasattr(request.state, "credential"):
            await self._record(request, status)

    async def _record(self, request: Request, status: int) -> None:
        database = self._services.database
        try:
            await database.later.written()
            async with database.change() as session:
                change = Change(session, self._services.now())
                change.on("path", request.url.path[:200])
                session.add(activity(request, change, status))
        except CarawayError as exc:
            # The refusal itself has been answered.
            logger.warning("a refused change is not recorded", extra={"reason": str(exc)})


class ForwardedGate:
    """Replaces the peer of a connection: rates, lock-outs and the activity log count by it."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if self._trusted and peer:
            forwarded = Headers(scope=scope).getlist("x-forwarded-for")
            address = proxies.client_address(peer[0], forwarded, self._trusted)
            if address != peer[0]:
                scope["client"] = (address, 0)
        await self._app(scope, receive, send)


class JsonGate:
    """Refuses JSON that is nested too deeply, has too many values or a key twice, and the like."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _has_json(scope):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        try:
            if body:
                await parsing.parsed_within(None, body, parsing.json, MOST_VALUES)
        except RefusedRequestError as exc:
            refusal = RefusedError(exc.status, exc.message, form=[exc.message])
            await failures.answer(request, refusal)(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)


def _has_json(scope: Scope) -> bool:
    """Return whether a request has a JSON body that is for a route here, not for a runtime."""
    if scope["type"] != "http" or "queries" in scope["path"].split("/"):
        return False
    if scope["path"] == _TOKENS:
        return False
    kind = Request(scope).headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
