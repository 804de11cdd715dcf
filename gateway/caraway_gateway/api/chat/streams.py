"""Sends what a model says as server-sent events, as it says it."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from caraway_ai import json_values
from caraway_core.concurrency import tasks
from caraway_gateway.api.chat import errors
from caraway_serving import scopes
from caraway_serving.streaming import disconnected

logger = logging.getLogger(__name__)
KEEP_ALIVE_S = 15.0
"""A stream that is silent for so long gets a comment, so that no proxy gives it up."""
HOLD_S = 10.0
"""Time that the status waits for the first event: an earlier error gets a status of its own."""
_MOST_WAITING = 256
_COMMENT = b": keep-alive\n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
Frame = Callable[[Any], bytes]


class EventPump:
    """Reads events in a task of its own, so that one wait serves events, pauses and clients."""

    def __init__(self, source: AsyncGenerator[object, None], receive: Receive) -> None:
        self._source = source
        self._events: deque[object] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._failure: BaseException | None = None
        self._task = tasks.begin(self._run(), "event stream")
        self._gone = tasks.begin(disconnected(receive), "client of a stream")
        for task in (self._task, self._gone):
            task.add_done_callback(lambda _: self._news.set())

    async def first(self, within_s: float) -> None:
        """Wait for the first event, or that long.

        Raises:
            ClientDisconnect: the client went away.
            BaseException: what the source raised before its first event.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._news.wait()
        except TimeoutError:
            return
        if self._gone.done():
            raise ClientDisconnect
        if self._failure is not None and not self._events:
            raise self._failure

    async def take_events(self) -> list[object]:
        """Return the events that are there, or none after `nudge`.

        Raises:
            StopAsyncIteration: the source ended.
            ClientDisconnect: the client went away.
            BaseException: what the source raised, after its last event.
        """
        if not (self._events or self._task.done() or self._gone.done()):
            await self._news.wait()
        self._news.clear()
        if self._gone.done():
            raise ClientDisconnect
        if self._events:
            found = list(self._events)
            self._events.clear()
            self._room.set()
            return found
        if self._task.done():
            raise self._failure or StopAsyncIteration
        return []

    def nudge(self) -> None:
        """End the wait of `take_events`."""
        self._news.set()

    async def aclose(self) -> None:
        """Stop the source, and the call behind it."""
        self._gone.cancel()
        self._task.cancel()
        await asyncio.wait((self._task, self._gone))

    async def _run(self) -> None:
        try:
            async with aclosing(self._source) as source:
                async for event in source:
                    self._events.append(event)
                    self._news.set()
                    if len(self._events) >= _MOST_WAITING:
                        self._room.clear()
                        await self._room.wait()
        except asyncio.CancelledError:
            self._failure = asyncio.CancelledError()
            raise
        except BaseException as exc:  # noqa: BLE001 -- the reader raises it
            self._failure = exc


class EventStream(Response):
    """The response of a stream; the call of the model ends with it, or when the client leaves."""

    def __init__(self, pump: EventPump, frame: Frame, failed: Frame, end: bytes) -> None:
        super().__init__()
        self._pump = pump
        self._frame = frame
        self._failed = failed
        self._end = end

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        try:
            await self._send_all(scope, send)
        finally:
            await self._pump.aclose()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        keep_alive = _KeepAlive(self._pump.nudge)
        try:
            while True:
                try:
                    events = await self._pump.take_events()
                except StopAsyncIteration:
                    break
                except ClientDisconnect:
                    return
                body = b"".join(map(self._frame, events)) if events else _COMMENT
                if body:
                    keep_alive.is_due = False
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        except errors.KNOWN as exc:
            await _last(send, self._failed(errors.document(exc)))
            return
        except Exception as exc:
            trace = scope[scopes.SPAN].trace_id if scopes.SPAN in scope else "unknown"
            logger.error("stream failed", exc_info=exc, extra={"path": scope["path"]})
            message = f"internal error; the log has the cause under trace id {trace}"
            internal = {"message": message, "type": "server_error", "param": None, "code": None}
            await _last(send, self._failed(internal))
            return
        finally:
            keep_alive.cancel()
        await _last(send, self._end)


class _KeepAlive:
    """Nudges a stream that was silent for a whole period; cheaper than a timer for each event."""

    def __init__(self, nudge: Callable[[], None]) -> None:
        self._nudge = nudge
        self._loop = asyncio.get_running_loop()
        self.is_due = True
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._tick)

    def cancel(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        if self.is_due:
            self._nudge()
        self.is_due = True
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._tick)


async def opened(request: Request, source: AsyncGenerator[object, None]) -> EventPump:
    """Begin a stream, and wait a while for its first event.

    Raises:
        ClientDisconnect: the client went away.
        BaseException: what the source raised before its first event.
    """
    pump = EventPump(source, request.receive)
    try:
        await pump.first(HOLD_S)
    except BaseException:
        await pump.aclose()
        raise
    return pump


def data(event: object) -> bytes:
    """Return the frame of one JSON object."""
    return b"data: " + json_values.dumped(event) + b"\n\n"


async def _last(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": False})
