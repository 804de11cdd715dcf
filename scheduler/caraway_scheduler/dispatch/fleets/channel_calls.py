"""Calls executors over channels, because Ray takes longer for a call than a short statement does.

Ray finds executors, tells that they live, and carries large tables of tasks. `open`, and tasks
with few rows, travel here while there is a channel. A scheduler that is in no Ray cluster makes
all its calls here, by name (see `reaching`).
"""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.channels import handshake
from caraway_core.channels.channel import Channel
from caraway_core.channels.handshake import NoProofError
from caraway_core.errors import CarawayError, ExecutorLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.wire import PackedPage, SentPage
from caraway_core.settings import Address

_CONNECT_S = 5.0
_KEEP_ALIVE_S = 30
_CLOSED = "its connection was closed"


class ChannelCalls:
    """The calls over one channel. They fail with it."""

    def __init__(self, executor_id: ExecutorId, place: Address) -> None:
        self.place = place
        self.executor_id = executor_id
        self._channel: Channel | None = None
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._count = 0

    @property
    def is_open(self) -> bool:
        """True if it accepts calls."""
        return self._channel is not None and self._channel.is_open

    async def connect(self, token: str) -> None:
        """Connect, and check that both ends know the token.

        Raises:
            NoProofError: the other end does not know it, or cannot be reached.
        """
        try:
            end = await self._connected()
        except (OSError, TimeoutError) as exc:
            cause = str(exc) or "timed out"
            raise NoProofError(f"cannot connect to {self.place}: {cause}") from exc
        try:
            await handshake.as_caller(end, token)
            self._channel = await Channel.open(end, self._receive, self._lost)
            self._channel.send_at_once()
        except BaseException:
            end.close()
            raise

    def open(self, arguments: bytes) -> "asyncio.Future[SentPage]":
        """Call `open` with packed arguments.

        Shield the answer, which may hold a cursor: whoever waits for it may have to close that.
        """
        assert self._channel is not None
        answer = self._begin()
        self._channel.send((self._count, arguments))
        return answer

    def call(self, method: str, arguments: tuple[object, ...]) -> "asyncio.Future[Any]":
        """Call a method of the executor's actor; fails at once if the channel is closed."""
        answer = self._begin()
        if self._channel is None or not self._channel.is_open:
            self._fail(_CLOSED)
        else:
            self._channel.send((self._count, wire.pack_call(*arguments), method))
        return answer

    def close(self, cause: str) -> None:
        """Close the channel; calls under way fail with the cause."""
        if self._channel is not None:
            self._channel.close()
        self._fail(cause)

    def _begin(self) -> "asyncio.Future[Any]":
        self._count += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = answer
        return answer

    async def _connected(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.place.host else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            end.setblocking(False)
            # Otherwise a firewall may forget a connection that is idle.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_S)
            async with asyncio.timeout(_CONNECT_S):
                place = (self.place.host, self.place.port)
                await asyncio.get_running_loop().sock_connect(end, place)
        except BaseException:
            end.close()
            raise
        return end

    def _receive(self, message: tuple[int, object], body: pa.Buffer | None) -> None:
        number, answer = message
        waiting = self._waiting.pop(number, None)
        if waiting is None or waiting.done():
            return  # Nobody waits for it any more.
        if isinstance(answer, CarawayError):
            waiting.set_exception(answer)
        elif isinstance(answer, PackedPage) and body is not None:
            waiting.set_result(replace(answer, rows=body))
        else:
            waiting.set_result(answer)

    def _lost(self) -> None:
        self._fail(_CLOSED)

    def _fail(self, cause: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if each.done():
                continue
            each.set_exception(ExecutorLostError(self.executor_id, cause))
