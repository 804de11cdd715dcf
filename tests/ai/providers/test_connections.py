"""The transport below the clients of providers, against servers that misbehave."""

import asyncio
import gzip
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from caraway_ai.providers import connections
from caraway_ai.providers.connections import PooledTransport
from tests.kit import byte_server
from tests.kit.byte_server import ByteServer

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def serving(
    reply: bytes, *, closes: bool = False
) -> AsyncIterator[tuple[httpx2.AsyncClient, str, ByteServer]]:
    async with byte_server.serving(reply, closes=closes) as (url, server):
        async with connections.http_client(None) as client:
            yield client, f"{url}/v1?a=%2Fb", server


async def test_a_connection_serves_the_next_request() -> None:
    async with serving(OK) as (client, url, server):
        for _ in range(3):
            assert (await client.get(url, headers={"x-own": "1"})).text == "ok"
        assert server.connections == 1
        assert server.heads[0].startswith(b"GET /v1?a=%2Fb HTTP/1.1\r\n")
        assert b"x-own: 1" in server.heads[0].lower()
        assert server.heads[0].lower().count(b"user-agent:") == 1


async def test_a_body_left_early_closes_its_connection() -> None:
    async with serving(CHUNKED + b"5\r\nfirst\r\n") as (client, url, server):
        async with client.stream("GET", url) as response:
            assert await anext(response.aiter_bytes()) == b"first"
        await asyncio.wait_for(server.ended.wait(), 10)


async def test_a_compressed_body_is_read() -> None:
    body = gzip.compress(b"text")
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    async with serving(head.encode() + body) as (client, url, _):
        assert (await client.get(url)).text == "text"


async def test_a_small_answer_that_decompresses_to_a_huge_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 5_000_000)
    body = gzip.compress(bytes(300_000_000))
    assert len(body) < 500_000
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    async with serving(head.encode() + body) as (client, url, _):
        tracemalloc.start()
        try:
            with pytest.raises(httpx2.RemoteProtocolError, match="larger than"):
                await client.get(url)
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


async def test_only_encodings_that_can_be_decoded_are_offered() -> None:
    async with serving(OK) as (client, url, server):
        await client.get(url, headers={"accept-encoding": "zstd, br"})
        await client.get(url, headers={"accept-encoding": "identity"})
        offered = [head.lower().split(b"accept-encoding: ")[1] for head in server.heads]
        assert [each.split(b"\r\n")[0] for each in offered] == [b"gzip, deflate", b"identity"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [(b"", httpx2.RemoteProtocolError),
     (b"nonsense\r\n\r\n", httpx2.RemoteProtocolError),
     (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", httpx2.RemoteProtocolError),
     (CHUNKED + b"5\r\nfir", httpx2.RemoteProtocolError),
     (CHUNKED + b"xyz\r\n", httpx2.RemoteProtocolError)],
)  # fmt: skip
async def test_a_broken_response_is_a_protocol_error(reply: bytes, error: type[Exception]) -> None:
    async with serving(reply, closes=True) as (client, url, _):
        with pytest.raises(error):
            await client.post(url, content=b"x")


@pytest.mark.parametrize("reply", [b"", CHUNKED])
async def test_a_silent_server_is_a_read_timeout(reply: bytes) -> None:
    async with serving(reply) as (client, url, _):
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(url, timeout=0.05)


async def test_a_closed_port_is_a_connect_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        async with connections.http_client(None) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get(f"http://127.0.0.1:{probe.getsockname()[1]}")


async def test_an_address_of_another_kind_is_refused() -> None:
    async with httpx2.AsyncClient(transport=PooledTransport(None)) as client:
        with pytest.raises(httpx2.UnsupportedProtocol):
            await client.get("ftp://127.0.0.1/x")


async def test_a_unix_socket_is_connected_to(tmp_path: Path) -> None:
    server = ByteServer(OK, closes=False)
    path = str(tmp_path / "s")
    async with (
        await asyncio.start_unix_server(server.serve, path),
        connections.http_client(None, path) as client,
    ):
        assert (await client.get("http://local/v1")).text == "ok"


@pytest.mark.parametrize(
    ("variable", "is_pooled"),
    [("HTTPS_PROXY", False), ("http_proxy", False), ("ALL_PROXY", False), ("NO_PROXY", True)],
)
def test_proxies_of_the_environment_are_left_to_the_default_transport(
    monkeypatch: pytest.MonkeyPatch, variable: str, is_pooled: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    made: list[object] = []

    def transport(*given: object) -> httpx2.AsyncBaseTransport:
        made.append(given)
        return httpx2.MockTransport(lambda _: httpx2.Response(200))

    monkeypatch.setattr(connections, "PooledTransport", transport)
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    connections.http_client(None)
    assert bool(made) is is_pooled
