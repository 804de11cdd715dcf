"""Both ends of a connection show that they know the token, and neither ever sends it."""

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from caraway_core.channels import handshake
from caraway_core.channels.handshake import NoProofError

TOKEN = "the token of the cluster"


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    for each in (one, other):
        each.setblocking(False)
    try:
        yield one, other
    finally:
        one.close()
        other.close()


async def outcomes(*work: Awaitable[None]) -> list[BaseException | None]:
    return await asyncio.gather(*work, return_exceptions=True)


async def received(end: socket.socket) -> bytes:
    return await asyncio.get_running_loop().sock_recv(end, 10_000)


async def test_two_ends_with_one_token_trust_each_other() -> None:
    async with pair() as (listener, caller):
        found = await outcomes(
            handshake.as_listener(listener, TOKEN), handshake.as_caller(caller, TOKEN)
        )
        assert found == [None, None]
        # Nothing is left over, so messages may follow.
        caller.send(b"first")
        assert await received(listener) == b"first"


async def test_another_token_is_refused_by_the_listener() -> None:
    async with pair() as (listener, caller):
        calling = asyncio.ensure_future(handshake.as_caller(caller, "another token"))
        with pytest.raises(NoProofError, match="does not know the cluster's token"):
            await handshake.as_listener(listener, TOKEN)
        listener.close()
        with pytest.raises(NoProofError, match="closed the connection"):
            await calling


async def test_a_listener_without_the_token_is_refused_by_the_caller() -> None:
    async with pair() as (listener, caller):
        calling = asyncio.ensure_future(handshake.as_caller(caller, TOKEN))
        listener.send(b"0" * 32)
        said = await received(listener)
        # The caller's own proof is not accepted as the listener's.
        listener.send(said[-64:])
        with pytest.raises(NoProofError, match="does not know the cluster's token"):
            await calling


async def test_what_was_said_over_one_connection_is_of_no_use_for_another() -> None:
    async with pair() as (listener, caller):
        listening = asyncio.ensure_future(handshake.as_listener(listener, TOKEN))
        loop, heard = asyncio.get_running_loop(), b""
        async with pair() as (between, real):
            calling = asyncio.ensure_future(handshake.as_caller(real, TOKEN))
            await loop.sock_sendall(between, await received(caller))
            heard = await received(between)
            await loop.sock_sendall(caller, heard)
            await loop.sock_sendall(between, await received(caller))
            assert await outcomes(listening, calling) == [None, None]
        assert TOKEN.encode() not in heard
    async with pair() as (listener, caller):
        listening = asyncio.ensure_future(handshake.as_listener(listener, TOKEN))
        await received(caller)
        await loop.sock_sendall(caller, heard)
        with pytest.raises(NoProofError):
            await listening


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 96, b"\0" * 500, pickle.dumps(print) * 10],
    ids=["nothing", "http", "no ascii", "zeros", "pickled"],
)
@pytest.mark.parametrize("end", [handshake.as_listener, handshake.as_caller])
async def test_anything_else_is_refused(
    said: bytes, end: Callable[[socket.socket, str], Awaitable[None]]
) -> None:
    async with pair() as (one, other):
        other.send(said)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(NoProofError):
            await end(one, TOKEN)


async def test_silence_is_waited_for_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "LIMIT_S", 0.01)
    async with pair() as (one, other):
        other.send(b"0" * 10)
        with pytest.raises(NoProofError, match="timed out"):
            await handshake.as_listener(one, TOKEN)
