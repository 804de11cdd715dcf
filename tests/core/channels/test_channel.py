import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.channels.channel import Channel


@dataclass
class End:
    """One end of a pair of channels, and the messages that it received."""

    received: list[tuple[Any, bytes | None]] = field(default_factory=list)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    channel: Channel | None = None

    def take(self, message: object, body: pa.Buffer | None) -> None:
        self.received.append((message, None if body is None else body.to_pybytes()))
        self.news.set()

    async def has(self, count: int) -> list[tuple[Any, bytes | None]]:
        async with asyncio.timeout(60):
            while len(self.received) < count:
                self.news.clear()
                await self.news.wait()
        return self.received


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[End, End]]:
    one, other = End(), End()
    sockets = socket.socketpair()
    for end, each in zip((one, other), sockets, strict=True):
        end.channel = await Channel.open(each, end.take, end.lost.set)
    try:
        yield one, other
    finally:
        for end in (one, other):
            assert end.channel is not None
            end.channel.close()
            await end.lost.wait()


async def test_messages_arrive_in_order_with_their_bodies() -> None:
    async with pair() as (one, other):
        assert one.channel is not None
        sizes = [0, 1, 11, 12, 13, 70_000, 3, 900_000, 300_000, 65_536, 65_535, 5, 262_144]
        for number, size in enumerate(sizes):
            body = pa.py_buffer(bytes([number]) * size) if size else None
            one.channel.send(("m", number), body)
        received = await other.has(len(sizes))
        assert received == [
            (("m", number), bytes([number]) * size if size else None)
            for number, size in enumerate(sizes)
        ]


@pytest.mark.parametrize("step", [1, 7, 4_096])
async def test_messages_may_arrive_in_pieces(step: int) -> None:
    sent = End()
    channel = Channel(sent.take, sent.lost.set)
    written: list[bytes] = []

    class Transport(asyncio.Transport):
        def write(self, data: Any) -> None:
            written.append(bytes(data))

        def is_closing(self) -> bool:
            return False

    channel.connection_made(Transport())
    channel.send("a", pa.py_buffer(b"x" * 5_000))
    channel.send("b")
    channel.send("c", pa.py_buffer(b"y"))
    assert len(written) == 3, "the reader wakes once for each message"
    stream = b"".join(written)
    for start in range(0, len(stream), step):
        piece = stream[start : start + step]
        while piece:
            room = channel.get_buffer(-1)
            count = min(len(room), len(piece))
            room[:count] = piece[:count]
            channel.buffer_updated(count)
            piece = piece[count:]
    assert sent.received == [("a", b"x" * 5_000), ("b", None), ("c", b"y")]


async def test_end_that_is_closed_is_told_to_the_other() -> None:
    async with pair() as (one, other):
        assert one.channel is not None and other.channel is not None
        one.channel.close()
        await other.lost.wait()
        assert not other.channel.is_open
        other.channel.send("nobody reads this")
