"""Limits connections, and the time and size of what clients send before and after a request.

uvicorn only limits the time between requests. This module also limits the time and size of the
request head, the time for unread body data after the response, and the number of connections.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from starlette.responses import PlainTextResponse
from uvicorn._types import ASGIApplication
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import OverloadedError
from caraway_serving.departures import DEPARTURE, Departure

WHOLE_BODY = "caraway.whole_body"
"""Set in the scope of a request whose body is complete, so that reading it does not block."""
_HEAD_BYTES = 64 * 1024
_NO_HOST = PlainTextResponse("a request of HTTP/1.1 has exactly one Host header; send one", 400)
_TEXT = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"


def quota(most: int, most_each: int | None = None) -> "Quota[BoundedProtocol]":
    """Return the quota of connections by address; those without a request may go."""
    limits = QuotaLimits(most=most, most_each=most_each)
    return Quota("connections", limits, may_go=lambda connection: connection.is_idle)


def bounded(
    connections: "Quota[BoundedProtocol]",
    head_timeout_s: float,
    is_leaving: Callable[[], bool] = lambda: False,
) -> Callable[..., asyncio.Protocol]:
    """Return a protocol factory; while leaving, each connection serves one more request."""

    def make(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        protocol = BoundedProtocol(config, server_state, app_state, _loop)
        protocol.quota = connections
        protocol.head_timeout_s = head_timeout_s
        protocol.is_leaving = is_leaving
        return protocol

    return make


class JoinedHead:
    """The transport of one response, which sends its head together with the start of its body.

    uvicorn writes the two apart, and the event loop sends each write at once. That is one call of
    the system, one packet and one wake-up of the client more for each response.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._is_begun = False

    def write(self, data: bytes) -> None:
        """Hold the first data until more follow or the event loop turns; send all other data."""
        if not self._is_begun:
            self._is_begun, self._head = True, data
            self._loop.call_soon(self._send_head)
        elif self._head is None:
            self._transport.write(data)
        else:
            head, self._head = self._head, None
            self._transport.writelines((head, data))

    def close(self) -> None:
        """Send buffered bytes, and close the connection."""
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closed or being closed."""
        return self._transport.is_closing()

    def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)


class BoundedProtocol(HttpToolsProtocol):
    """One limited connection; a request head that arrives in one piece needs no timer."""

    quota: Quota["BoundedProtocol"]
    head_timeout_s = 0.0
    is_leaving: Callable[[], bool] = staticmethod(lambda: False)
    _timer: asyncio.TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0
    _departures: deque[Departure]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's own narrowing
        super().connection_made(transport)
        self._departures = deque()
        try:
            idle = self.quota.add(self.client[0] if self.client else "", self)
        except OverloadedError as exc:
            self._refuse("503 Service Unavailable", exc.message, b"retry-after: 1\r\n")
            return
        for connection in idle:
            connection.transport.close()
        self._begin(self._give_up)

    @property
    def is_idle(self) -> bool:
        """True if it carries no request, and none of its head has arrived."""
        return not self._is_in_head and (self.cycle is None or self.cycle.response_complete)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self.quota.drop(self)
        super().connection_lost(exc)
        while self._departures:
            self._departures.popleft().happen()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > _HEAD_BYTES:
            self._refuse(
                "431 Request Header Fields Too Large",
                f"the head of the request is larger than {_HEAD_BYTES} bytes",
            )
        elif self._timer is None:
            self._begin(self._give_up)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._end()
        self.quota.use(self)
        is_named = self._names_one_host()
        if not is_named:
            self.app = cast(ASGIApplication, _NO_HOST)
        super().on_headers_complete()
        if self.cycle is None:
            return
        if not is_named:
            self.cycle.keep_alive = False
        departure = Departure(self.flow)
        self._departures.append(departure)
        cast(dict[str, object], self.scope)[DEPARTURE] = departure
        self.cycle.transport = cast(asyncio.Transport, JoinedHead(self.transport, self.loop))
        if self.is_leaving():
            # If the connection stays open, the client sends its next request to this process again.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._end()
        cast(dict[str, object], self.scope)[WHOLE_BODY] = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._departures:
            # Requests that a client sent ahead are answered in their order.
            self._departures.popleft()
        super().on_response_complete()
        cycle = self.cycle
        if cycle is not None and cycle.response_complete and cycle.more_body:
            # The rest of the body is ignored; the connection only waits for the end of the request.
            self._begin(self.transport.close)

    def _names_one_host(self) -> bool:
        """Return whether the head has one Host, as HTTP/1.1 requires."""
        if self.parser.get_http_version() != "1.1":
            return True
        return sum(name == b"host" for name, _ in self.headers) == 1

    def announce_close(self) -> None:
        """Have the response to the request under way announce that the connection closes.

        Where that response has begun, the next one announces it.
        """
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def _begin(self, then: Callable[[], None]) -> None:
        self._end()
        if not self.transport.is_closing():
            self._timer = self.loop.call_later(self.head_timeout_s, then)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self._is_in_head:
            self._refuse(
                "408 Request Timeout",
                f"the head of the request did not arrive within {self.head_timeout_s:g} s",
            )
        else:
            self.transport.close()

    def _refuse(self, status: str, message: str, headers: bytes = b"") -> None:
        self._end()
        if self.transport.is_closing():
            return
        body = message.encode()
        length = b"content-length: %d\r\n\r\n" % len(body)
        head = b"HTTP/1.1 %s\r\n" % status.encode()
        self.transport.write(head + _TEXT + headers + length + body)
        self.transport.close()
