import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import zstandard
from starlette.requests import ClientDisconnect, Request

from caraway_serving import bodies, scopes
from caraway_serving.errors import RefusedRequestError
from caraway_serving.http_connections import WHOLE_BODY
from caraway_serving.room import FREE_BYTES, BodyMemory, Lease

Receive = Callable[[], Awaitable[dict[str, Any]]]


def request(
    receive: Receive, length: str | None = None, encoding: str = "", room: BodyMemory | None = None
) -> Request:
    headers = [(b"content-length", length.encode())] if length else []
    if encoding:
        headers.append((b"content-encoding", encoding.encode()))
    lease = Lease(room) if room else None
    return Request({"type": "http", "headers": headers, scopes.LEASE: lease}, receive)


def bare_deflate(text: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(text) + compressor.flush()


def zstd_without_size(text: bytes) -> bytes:
    packed: bytes = zstandard.ZstdCompressor(write_content_size=False).compress(text)
    return packed


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare_deflate),
    ("zstd", zstandard.compress), ("zstd", zstd_without_size),
]  # fmt: skip


def parts(*messages: dict[str, Any]) -> Receive:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def test_parts_are_joined() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True},
                    {"type": "http.request", "body": b"1"})  # fmt: skip
    assert await bodies.read(request(receive), 100) == b"SELECT 1"


async def test_body_that_is_here_is_read_without_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: float) -> None:
        raise AssertionError("a timer was set")

    monkeypatch.setattr(asyncio, "timeout", refuse)
    here = request(parts({"type": "http.request", "body": b"SELECT 1"}))
    here.scope[WHOLE_BODY] = True
    assert await bodies.read(here, 100) == b"SELECT 1"


async def test_body_that_stops_arriving_is_408() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True})
    with pytest.raises(RefusedRequestError) as caught:
        await bodies.read(request(receive), 100, chunk_timeout_s=0.02)
    assert caught.value.status == 408
    assert "after 7 bytes" in caught.value.message


async def test_truncated_body_is_no_body() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True},
                    {"type": "http.disconnect"})  # fmt: skip
    with pytest.raises(ClientDisconnect):
        await bodies.read(request(receive), 100)


@pytest.mark.parametrize("length", [None, "200"])
async def test_body_over_the_limit_is_413(length: str | None) -> None:
    receive = parts({"type": "http.request", "body": b"x" * 150, "more_body": True})
    with pytest.raises(RefusedRequestError) as caught:
        await bodies.read(request(receive, length), 100)
    assert caught.value.status == 413


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
async def test_compressed_bodies_are_read(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    text = b"SELECT 1 " * 300_000
    receive = parts({"type": "http.request", "body": pack(text)})
    assert await bodies.read(request(receive, encoding=encoding), len(text)) == text


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
async def test_decompression_bomb_is_413_before_it_is_complete(
    encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    receive = parts({"type": "http.request", "body": pack(bytes(50_000_000))})
    with pytest.raises(RefusedRequestError) as caught:
        await bodies.read(request(receive, encoding=encoding), 200_000)
    assert caught.value.status == 413


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
@pytest.mark.parametrize("damage", ["cut", "other"])
async def test_body_with_a_wrong_encoding_is_400(
    encoding: str, pack: Callable[[bytes], bytes], damage: str
) -> None:
    body = pack(b"SELECT 12345678")[:-3] if damage == "cut" else b"SELECT 1"
    receive = parts({"type": "http.request", "body": body})
    with pytest.raises(RefusedRequestError, match="Content-Encoding says") as caught:
        await bodies.read(request(receive, encoding=encoding), 1000)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "many", [gzip.compress(b"x", mtime=0), zstandard.compress(b"x")], ids=["gzip", "zstd"]
)
async def test_endless_small_parts_are_refused(many: bytes) -> None:
    encoding = "gzip" if many[0] == 0x1F else "zstd"
    receive = parts({"type": "http.request", "body": many * 1_001})
    with pytest.raises(RefusedRequestError) as caught:
        await bodies.read(request(receive, encoding=encoding), 1_000_000)
    assert caught.value.status == 400


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "compress", "x-unknown"])
async def test_other_encodings_are_415_with_the_supported_ones(encoding: str) -> None:
    with pytest.raises(RefusedRequestError, match="not supported; known: gzip") as caught:
        await bodies.read(request(parts(), encoding=encoding), 1000)
    assert caught.value.status == 415
    assert "zstd" in caught.value.headers["accept-encoding"]


@pytest.mark.parametrize("length", [None, "1000000"])
async def test_large_bodies_take_room_and_give_it_back(length: str | None) -> None:
    room = BodyMemory(4_000_000)
    chunk = {"type": "http.request", "body": b"x" * 100_000, "more_body": True}
    asked = request(parts(*[chunk] * 9, {**chunk, "more_body": False}), length, room=room)
    assert len(await bodies.read(asked, 1_000_000)) == 1_000_000
    assert room.taken_bytes >= 1_000_000 - FREE_BYTES
    lease = scopes.lease(asked)
    assert lease is not None
    lease.end()
    assert room.taken_bytes == 0


async def test_body_without_room_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    room = BodyMemory(200_000, wait_s=0.01)
    await Lease(room).grow(150_000)
    receive = parts({"type": "http.request", "body": b"x" * 100_000})
    with pytest.raises(RefusedRequestError, match="max_body_memory") as caught:
        await bodies.read(request(receive, "100000", room=room), 1_000_000)
    assert caught.value.status == 503


async def test_body_that_trickles_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_GRACE_S", -1e9)
    receive = parts(*[{"type": "http.request", "body": b"x", "more_body": True}] * 3)
    with pytest.raises(RefusedRequestError, match="too slowly") as caught:
        await bodies.read(request(receive), 1000)
    assert caught.value.status == 408
