"""The connections to runtimes, against servers that misbehave."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from caraway_core.errors import CarawayError, DeadlineError, UnavailableError
from caraway_management.passthrough import headers
from caraway_management.passthrough.runtimes import Runtime, Runtimes
from tests.kit import byte_server
from tests.kit.byte_server import ByteServer

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
_SILENCE_S = 30.0


@asynccontextmanager
async def reaching(
    reply: bytes, *, closes: bool = False
) -> AsyncIterator[tuple[Runtimes, str, ByteServer]]:
    async with byte_server.serving(reply, closes=closes) as (url, server):
        runtimes = Runtimes()
        try:
            yield runtimes, url, server
        finally:
            await runtimes.aclose()


async def sent(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_connection_serves_the_next_request_and_adds_no_header() -> None:
    async with reaching(OK) as (runtimes, url, server):
        for _ in range(3):
            assert await runtimes.read_json(Runtime(1, url, "key"), "/a%2Fb?c=%26", 5.0) == []
        assert server.connections == 1
    head = server.heads[0].lower()
    assert head.startswith(b"get /a%2fb?c=%26 http/1.1\r\n")
    names = sorted(line.partition(b":")[0] for line in head.splitlines()[1:] if line)
    assert names == [b"host", b"x-api-key"]


async def test_a_compressed_body_passes_as_it_is() -> None:
    body = gzip.compress(b"text")
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    async with (
        reaching(head.encode() + body) as (runtimes, url, _),
        runtimes.open("GET", url, [], _SILENCE_S) as response,
    ):
        assert headers.length(response.headers) == len(body)
        assert b"".join([part async for part in response.parts()]) == body


@pytest.mark.parametrize("declared", [[], [(b"content-length", b"6")]])
async def test_a_body_is_sent_in_parts_or_with_its_length(
    declared: Sequence[tuple[bytes, bytes]],
) -> None:
    async with (
        reaching(OK) as (runtimes, url, server),
        runtimes.open("POST", url, declared, _SILENCE_S, sent(b"abc", b"def")) as response,
    ):
        assert response.status == 200
        assert [part async for part in response.parts()] == [b"[]"]
    if declared:
        assert b"content-length: 6" in server.heads[0].lower()
        assert b"chunked" not in server.heads[0].lower()
    else:
        assert server.body == b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"


@pytest.mark.parametrize(("content", "length"), [(None, None), (b"", None), (b"abc", b"3")])
async def test_the_length_is_that_of_the_body_that_is_sent(
    content: bytes | None, length: bytes | None
) -> None:
    """Otherwise the next request on the connection would be taken for the body."""
    async with (
        reaching(OK) as (runtimes, url, server),
        runtimes.open("GET", url, [(b"Content-Length", b"6")], _SILENCE_S, content) as response,
    ):
        assert response.status == 200
    lengths = [
        line.partition(b": ")[2]
        for line in server.heads[0].splitlines()
        if line.lower().startswith(b"content-length")
    ]
    assert lengths == ([] if length is None else [length])


async def test_a_redirect_is_a_response() -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"
    async with (
        reaching(moved) as (runtimes, url, server),
        runtimes.open("GET", url, [], _SILENCE_S) as response,
    ):
        assert response.status == 302
        assert [part async for part in response.parts()] == []
    assert len(server.heads) == 1


async def test_a_body_left_early_closes_its_connection() -> None:
    async with reaching(CHUNKED + b"5\r\nfirst\r\n") as (runtimes, url, server):
        async with runtimes.open("GET", url, [], _SILENCE_S) as response:
            assert await anext(response.parts()) == b"first"
        await asyncio.wait_for(server.ended.wait(), 10)


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (b"", UnavailableError),
        (b"HTTP/1.1 200 OK\r\ncont", UnavailableError),
        (b"SSH-2.0-OpenSSH\r\n\r\n", UnavailableError),
        (b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 100_000 + b"\r\n\r\n", UnavailableError),
    ],
)
async def test_what_is_no_response_is_a_runtime_that_is_away(
    reply: bytes, raised: type[CarawayError]
) -> None:
    async with reaching(reply, closes=True) as (runtimes, url, _):
        with pytest.raises(raised, match="does not respond"):
            await runtimes.read_page(url, _SILENCE_S)


async def test_a_cut_body_is_an_error() -> None:
    async with reaching(CHUNKED + b"5\r\nfirst\r\n", closes=True) as (runtimes, url, _):
        async with runtimes.open("GET", url, [], _SILENCE_S) as response:
            parts = response.parts()
            assert await anext(parts) == b"first"
            with pytest.raises(UnavailableError):
                await anext(parts)
        with pytest.raises(UnavailableError):
            await runtimes.read_page(url, _SILENCE_S)


async def test_silence_ends_a_request() -> None:
    async with reaching(b"") as (runtimes, url, _):
        with pytest.raises(DeadlineError, match=r"within 0\.05 s"):
            await runtimes.read_page(url, 0.05)


async def test_the_silence_begins_once_the_body_is_sent() -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(4):
            # Together longer than the runtime may be silent.
            await asyncio.sleep(0.1)
            yield b"a"

    async with (
        reaching(OK) as (runtimes, url, _),
        runtimes.open("POST", url, [], 0.3, slowly()) as response,
    ):
        assert response.status == 200
        assert [part async for part in response.parts()] == [b"[]"]


async def test_nothing_listens() -> None:
    async with reaching(OK) as (runtimes, url, _):
        pass
    runtimes = Runtimes()
    with pytest.raises(UnavailableError, match="does not respond"):
        await runtimes.read_page(url, _SILENCE_S)
    await runtimes.aclose()
