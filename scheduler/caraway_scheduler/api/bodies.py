"""Reads request bodies within bounds of size and time."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from caraway_scheduler.api.errors import RefusedError

_CHUNK_TIMEOUT_S = 30.0


async def read(
    request: Request, limit_bytes: int, chunk_timeout_s: float = _CHUNK_TIMEOUT_S
) -> bytes:
    """Return the whole body.

    Raises:
        RefusedError: it is longer than the limit, or stopped arriving.
        ClientDisconnect: the client went away before its end.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit_bytes:
        raise too_large(limit_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        try:
            async with asyncio.timeout(chunk_timeout_s):
                message = await request.receive()
        except TimeoutError:
            raise RefusedError(
                408, f"the request body stopped arriving after {size} bytes; send all of it"
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        if not message.get("more_body"):
            return b"".join((*chunks, chunk)) if chunks else chunk
        chunks.append(chunk)


def too_large(limit_bytes: int) -> RefusedError:
    return RefusedError(
        413, f"the request body is larger than {limit_bytes} bytes; send it in smaller parts"
    )
