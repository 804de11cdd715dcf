"""Passes one request to a runtime and its response back, both as they come."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from caraway_core.concurrency import tasks
from caraway_core.errors import DeadlineError, UnavailableError
from caraway_management.passthrough import headers
from caraway_management.passthrough.passing import Passthrough
from caraway_management.passthrough.runtimes import Runtime

logger = logging.getLogger(__name__)
_KEY_REFUSED = frozenset({401})
_RETRY_AFTER_S = 5
Ended = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Target:
    """The target that a request is passed to. The path is made of checked parts."""

    runtime: Runtime
    method: str
    path: str
    query: str
    silence_s: float

    @property
    def url(self) -> str:
        """The URL at the runtime."""
        url = f"{self.runtime.endpoint}{self.path}"
        return f"{url}?{self.query}" if self.query else url


class Forwarded(Response):
    """A response that a runtime gives. The request to it ends when the caller leaves."""

    def __init__(self, passthrough: Passthrough, org_id: int, target: Target, ended: Ended) -> None:
        """Set the function that is called with the status before the response is sent."""
        super().__init__()
        self._passthrough = passthrough
        self._org_id = org_id
        self._target = target
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the response back."""
        with self._passthrough.room(self._org_id):
            await self._pass_unless_left(scope, receive, send)

    async def _pass_unless_left(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(receive)
        passing = tasks.begin(self._pass(scope, body, send))
        leaving = tasks.begin(body.left())
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                logger.info("a caller left", extra={"project": self._target.runtime.project_id})
        finally:
            for task in (leaving, passing):
                task.cancel()
            await asyncio.wait((passing, leaving))
        if not passing.cancelled():
            passing.result()

    async def _pass(self, scope: Scope, body: "_Body", send: Send) -> None:
        target = self._target
        sent = headers.to_runtime(scope["headers"], target.runtime.api_key)
        content = None
        if target.method == "POST":
            content = await body.content()
        else:
            body.skip()
        async with self._passthrough.runtimes.open(
            target.method, target.url, sent, target.silence_s, content
        ) as response:
            if response.status in _KEY_REFUSED:
                # The caller's own credential was accepted; this is about the key of the project.
                raise UnavailableError(
                    "the runtime of the project does not accept its key yet; try again",
                    _RETRY_AFTER_S,
                )
            await self._ended(response.status)
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status,
                    "headers": headers.to_caller(response.headers),
                }
            )
            # With the last byte the response ends, so that it leaves at once.
            left, has_ended = headers.length(response.headers), False
            try:
                async for part in response.parts():
                    left -= len(part)
                    has_ended = left == 0
                    await send(
                        {"type": "http.response.body", "body": part, "more_body": not has_ended}
                    )
            except (UnavailableError, DeadlineError) as exc:
                # Without an end the server cuts the connection, so the caller sees the failure.
                logger.warning(
                    "a response of a runtime was cut",
                    extra={
                        "project": target.runtime.project_id,
                        "reason": type(exc.__cause__).__name__,
                    },
                )
                return
            if not has_ended:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Body:
    """The body of a request, and what comes after it: that the caller leaves."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_read = asyncio.Event()
        self._has_left = False

    def skip(self) -> None:
        """Do without the body: nothing reads it."""
        self._is_read.set()

    async def content(self) -> bytes | AsyncIterator[bytes]:
        """Return the body: as one, if it is there, or else its parts as they arrive."""
        first = await self._receive_part()
        return self._parts(first) if first.get("more_body", False) else first.get("body", b"")

    async def _parts(self, message: Message) -> AsyncIterator[bytes]:
        yield message.get("body", b"")
        while message.get("more_body", False):
            message = await self._receive_part()
            yield message.get("body", b"")

    async def _receive_part(self) -> Message:
        message = await self._receive()
        self._has_left = message["type"] == "http.disconnect"
        if not message.get("more_body", False):
            self._is_read.set()
        if self._has_left:
            raise asyncio.CancelledError
        return message

    async def left(self) -> None:
        """Return when the caller has left; it is only seen while or after the body is read."""
        await self._is_read.wait()
        while not self._has_left and (await self._receive())["type"] != "http.disconnect":
            pass
