"""Reads request bodies with limits on size, time and memory."""

import asyncio
import sys
import time

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from caraway_serving import compression, scopes
from caraway_serving.errors import RefusedRequestError
from caraway_serving.room import FREE_BYTES, Lease

_CHUNK_TIMEOUT_S = 30.0
_MOST_DIGITS = 19
_GRACE_S = 30.0
_LEAST_BYTES_PER_S = 16 * 1024
"""The lowest transfer rate after the grace period; slower clients hold memory for too long."""


async def read(
    request: Request, limit_bytes: int, chunk_timeout_s: float = _CHUNK_TIMEOUT_S
) -> bytes:
    """Return the whole body, decompressed according to its Content-Encoding.

    Raises:
        RefusedRequestError: the body is too large, arrives too slowly, has an unsupported encoding,
            or there is no memory for it.
        ClientDisconnect: the client disconnected before the end of the body.
    """
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding and encoding not in compression.DECODED:
        raise RefusedRequestError(
            415,
            f"bodies with Content-Encoding '{encoding[:100]}' are not supported; known: "
            f"{', '.join(compression.DECODED)}",
            {"accept-encoding": ", ".join(compression.DECODED)},
        )
    lease = scopes.lease(request)
    body = await _received(request, limit_bytes, chunk_timeout_s, lease)
    if encoding in ("", "identity"):
        return body
    return await _decompressed(body, encoding, limit_bytes, lease)


def too_large(limit_bytes: int) -> RefusedRequestError:
    """Return the refusal of a body that is larger than its limit."""
    return RefusedRequestError(
        413, f"the request body is larger than {limit_bytes} bytes; send it in smaller parts"
    )


def declared_bytes(request: HTTPConnection) -> int:
    """Return the size that the head of a request declares; 0 if it declares none."""
    declared = request.headers.get("content-length", "")
    if not (declared.isascii() and declared.isdigit()):
        return 0
    # Python refuses to read thousands of digits.
    return int(declared) if len(declared) < _MOST_DIGITS else sys.maxsize


async def _received(
    request: Request, limit_bytes: int, chunk_timeout_s: float, lease: Lease | None
) -> bytes:
    expected = declared_bytes(request)
    if expected > limit_bytes:
        raise too_large(limit_bytes)
    if lease is not None and expected > FREE_BYTES:
        await lease.grow(expected)
    room = max(expected, FREE_BYTES)
    chunks: list[bytes] = []
    size = 0
    begun = time.monotonic()
    while True:
        chunk, is_last = await _chunk(request, size, chunk_timeout_s)
        size += len(chunk)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        if is_last:
            return b"".join((*chunks, chunk)) if chunks else chunk
        chunks.append(chunk)
        if size > room and lease is not None:
            more = min(max(size, room), limit_bytes)
            await lease.grow(more)
            room += more
        if time.monotonic() - begun > _GRACE_S + size / _LEAST_BYTES_PER_S:
            raise RefusedRequestError(
                408,
                f"the request body arrives too slowly: {size} bytes so far; send at least "
                f"{_LEAST_BYTES_PER_S} bytes a second",
            )


async def _chunk(request: Request, size: int, timeout_s: float) -> tuple[bytes, bool]:
    if scopes.has_whole_body(request):
        message = (
            await request.receive()
        )  # A timer would cost as much as the rest of this function.
    else:
        try:
            async with asyncio.timeout(timeout_s):
                message = await request.receive()
        except TimeoutError:
            raise RefusedRequestError(
                408, f"the request body stopped arriving after {size} bytes; send all of it"
            ) from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), not message.get("more_body")


async def _decompressed(body: bytes, encoding: str, limit_bytes: int, lease: Lease | None) -> bytes:
    """Decompress in steps, so that a small body cannot expand beyond the limit."""
    steps = compression.decompressed(body, encoding)
    parts: list[bytes] = []
    size = room = 0
    try:
        while (part := await asyncio.to_thread(next, steps, None)) is not None:
            size += len(part)
            if size > limit_bytes:
                raise too_large(limit_bytes)
            parts.append(part)
            if size > room and lease is not None:
                more = min(max(size, FREE_BYTES), limit_bytes)
                await lease.grow(more)
                room += more
    except compression.DamagedBodyError:
        raise RefusedRequestError(
            400, f"the request body is not {encoding}, as its Content-Encoding says"
        ) from None
    return b"".join(parts)
