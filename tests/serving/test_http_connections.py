"""Clients that hold a connection without sending a request, against a real server."""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from caraway_serving.http_connections import WHOLE_BODY, BoundedProtocol, JoinedHead
from caraway_serving.listeners import HttpServer

LONG_S, SHORT_S = 60.0, 0.5
WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/whole":
        await PlainTextResponse(f"whole: {WHOLE_BODY in scope}")(scope, receive, send)
        return
    body = b"" if scope["path"] == "/unread" else await Request(scope, receive).body()
    await PlainTextResponse(b"%d" % len(body))(scope, receive, send)


@asynccontextmanager
async def served(
    head_timeout_s: float, most_connections: int = 100, most_of_address: int | None = None
) -> AsyncIterator[tuple[HttpServer, int]]:
    with socket.socket(proto=socket.IPPROTO_TCP) as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        server = HttpServer(
            echo,
            most_connections=most_connections,
            most_of_address=most_of_address,
            head_timeout_s=head_timeout_s,
        )
        serving = asyncio.create_task(server.serve(sockets=[held]))
        try:
            yield server, held.getsockname()[1]
        finally:
            server.stop(now=True)
            await serving


async def answer(port: int, *pieces: bytes) -> bytes:
    """Send the pieces and return everything until the server closes."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            return await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def first_line(port: int, request: bytes) -> bytes:
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        line = await reader.readline()
        writer.close()
        return line


@pytest.mark.parametrize(
    "sent", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: "]
)
async def test_half_a_head_is_408_after_its_time(sent: bytes) -> None:
    async with served(SHORT_S) as (server, port):
        got = await answer(port, sent)
        assert got.startswith(b"HTTP/1.1 408 Request Timeout")
        assert not server.server_state.connections


async def test_connection_without_a_byte_is_closed() -> None:
    async with served(SHORT_S) as (_, port):
        assert await answer(port) == b""


async def test_second_request_of_a_connection_has_its_time_too() -> None:
    async with served(SHORT_S) as (_, port):
        got = await answer(port, WHOLE, b"GET / HT")
        assert got.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 408" in got


async def test_400_half_heads_leave_nothing_behind() -> None:
    async with served(1.0) as (server, port):
        ends = await asyncio.gather(*(answer(port, b"GET / HTTP/1.1\r\nx: y") for _ in range(99)))
        assert {end[:12] for end in ends} == {b"HTTP/1.1 408"}
        assert not server.server_state.connections
        assert await first_line(port, WHOLE) == b"HTTP/1.1 200 OK\r\n"


async def test_endless_head_is_431() -> None:
    async with served(LONG_S) as (_, port):
        line = b"x-more: " + b"y" * 1000 + b"\r\n"
        got = await answer(port, b"GET / HTTP/1.1\r\n", *[line] * 65)
        assert got.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    ("version", "hosts", "status"),
    [("1.1", 0, 400), ("1.1", 2, 400), ("1.1", 1, 200), ("1.0", 0, 200)],
)
async def test_http_1_1_needs_one_host(version: str, hosts: int, status: int) -> None:
    async with served(LONG_S) as (_, port):
        head = f"POST / HTTP/{version}\r\n".encode() + b"host: x\r\n" * hosts
        ending = b"content-length: 3\r\nconnection: close\r\n\r\nabc"
        got = await answer(port, head + ending)
        assert got.startswith(b"HTTP/1.1 %d " % status), got


async def test_a_request_without_host_ends_its_connection_in_turn() -> None:
    async with served(LONG_S) as (_, port):
        got = await answer(port, WHOLE + b"GET / HTTP/1.1\r\n\r\n" + WHOLE)
        assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"400"]


async def test_rest_of_an_unread_body_has_a_time_limit() -> None:
    async with served(SHORT_S) as (_, port):
        head = b"POST /unread HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
        assert (await answer(port, head, b"xxx")).startswith(b"HTTP/1.1 200")


HALF = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc"
Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(port: int, request: bytes, address: str = "127.0.0.1") -> Connected:
    """Send a request from an address, and wait for its answer unless it is half of one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(request)
    if request is WHOLE:
        assert (await reader.readuntil(b"\r\n\r\n0")).startswith(b"HTTP/1.1 200")
    return reader, writer


async def until_busy(server: HttpServer, count: int) -> None:
    held = cast(set[BoundedProtocol], server.server_state.connections)
    while sum(not each.is_idle for each in held) != count:
        await asyncio.sleep(0)


async def test_connections_beyond_the_bound_are_503_while_all_are_busy() -> None:
    async with served(LONG_S, most_connections=2) as (server, port), asyncio.timeout(60):
        kept = [await connected(port, HALF) for _ in range(2)]
        await until_busy(server, 2)
        refused = await answer(port)
        assert refused.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in refused
        for _, writer in kept:
            writer.close()
        while server.server_state.connections:
            await asyncio.sleep(0)
        assert len(server.quota) == 0
        assert await first_line(port, WHOLE) == b"HTTP/1.1 200 OK\r\n"


async def test_the_address_with_most_connections_gives_up_its_oldest_idle_one() -> None:
    async with served(LONG_S, most_connections=4) as (server, port), asyncio.timeout(60):
        other = await connected(port, WHOLE, "127.0.0.2")
        greedy = [await connected(port, WHOLE) for _ in range(3)]
        greedy[0][1].write(WHOLE)
        await greedy[0][0].readuntil(b"\r\n\r\n0")
        more = await connected(port, WHOLE, "127.0.0.2")
        assert await greedy[1][0].read() == b"", "its oldest idle connection was closed"
        for reader, writer in (other, greedy[0], greedy[2], more):
            writer.write(WHOLE)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
        greedy[1][1].close()
        assert server.quota.evictions == 1


async def test_one_address_has_a_limit_of_its_own() -> None:
    async with (
        served(LONG_S, most_connections=9, most_of_address=2) as (server, port),
        asyncio.timeout(60),
    ):
        busy = [await connected(port, HALF) for _ in range(2)]
        await until_busy(server, 2)
        assert (await answer(port)).startswith(b"HTTP/1.1 503")
        _, other = await connected(port, WHOLE, "127.0.0.2")
        for writer in (other, *(each for _, each in busy)):
            writer.close()


async def test_pipelined_requests_and_slow_bodies_are_served() -> None:
    async with served(LONG_S) as (_, port):
        post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\nconnection: close\r\n\r\n"
        got = await answer(port, WHOLE + WHOLE, post, b"abc", b"def")
        assert got.count(b"HTTP/1.1 200 OK") == 3
        assert got.endswith(b"\r\n\r\n6")


async def test_a_server_that_drains_closes_kept_connections_and_takes_one_request_of_new_ones() -> (
    None
):
    async with served(LONG_S) as (server, port), asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(WHOLE)
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"connection: close" not in head
        assert await reader.readexactly(1) == b"0"

        server.drain()

        assert await reader.read() == b""
        writer.close()
        # The server closes the connection, although the client would keep it.
        assert b"connection: close" in await answer(port, WHOLE)


async def test_a_running_request_is_answered_while_the_server_drains() -> None:
    async with served(LONG_S) as (server, port), asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\na")
        while not server.server_state.tasks:
            await asyncio.sleep(0)

        server.drain()
        writer.write(b"bc")

        found = await reader.read()
        assert found.startswith(b"HTTP/1.1 200") and found.endswith(b"3")
        assert b"connection: close" in found
        writer.close()


@pytest.mark.parametrize(("body", "is_whole"), [(b"SELECT 1", True), (b"SELECT", False)])
async def test_a_request_says_if_its_body_is_here(body: bytes, is_whole: bool) -> None:
    head = b"POST /whole HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 8\r\n\r\n"
    async with served(LONG_S) as (_, port), asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head + body)
            assert f"whole: {is_whole}".encode() in await reader.readuntil(str(is_whole).encode())
        finally:
            writer.close()


class Written:
    """A transport that keeps the bytes of each call."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.sent.append(b"".join(pieces))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


def begun() -> tuple[JoinedHead, Written]:
    written = Written()
    transport = cast(asyncio.Transport, written)
    return JoinedHead(transport, asyncio.get_running_loop()), written


async def test_a_head_goes_with_the_start_of_its_body() -> None:
    response, written = begun()
    for piece in (b"head", b"body", b"more"):
        response.write(piece)
    await asyncio.sleep(0)
    assert written.sent == [b"headbody", b"more"]


async def test_a_head_does_not_wait_for_its_body() -> None:
    response, written = begun()
    response.write(b"head")
    assert written.sent == []
    await asyncio.sleep(0)
    assert written.sent == [b"head"]
    response.write(b"body")
    assert written.sent == [b"head", b"body"]


async def test_a_head_is_sent_before_the_end() -> None:
    response, written = begun()
    response.write(b"head")
    response.close()
    assert written.sent == [b"head"] and response.is_closing()
    await asyncio.sleep(0)
    assert written.sent == [b"head"]


async def test_nothing_is_sent_when_the_client_is_gone() -> None:
    response, written = begun()
    response.write(b"head")
    written.close()
    await asyncio.sleep(0)
    assert written.sent == []


async def test_all_of_each_response_goes_with_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    write = JoinedHead.write

    def noted(self: JoinedHead, data: bytes) -> None:
        sent.append(data)
        write(self, data)

    monkeypatch.setattr(JoinedHead, "write", noted)
    async with served(LONG_S) as (_, port):
        close = WHOLE.replace(b"host: x", b"host: x\r\nconnection: close")
        got = await answer(port, WHOLE, close)
        assert got == b"".join(sent) and len(sent) == 4
