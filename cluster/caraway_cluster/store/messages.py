"""ASGI requests and responses of the store. Every wait for a client has a timeout."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

PATIENCE_S = 30.0
"""The time that a client may take to send its next block or to receive ours."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


class HttpError(Exception):
    """An error response."""

    def __init__(self, status: int, text: str, headers: Headers = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = tuple(headers)


class Body:
    """The body of a request, read as it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_read = False

    async def read_blocks(self, min_bytes: int) -> list[bytes]:
        """Read at least `min_bytes`, or less at the end of the body; empty after the end.

        Raises:
            HttpError: the client stopped sending.
            ConnectionError: the client disconnected.
        """
        found: list[bytes] = []
        size = 0
        while size < min_bytes and not self.is_read:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    message = await self._receive()
            except TimeoutError:
                raise HttpError(408, "timed out waiting for the rest of the chunk") from None
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client disconnected")
            block = message.get("body", b"")
            if block:
                found.append(block)
                size += len(block)
            self.is_read = not message.get("more_body", False)
        return found


class Reply:
    """The response to one request. `status` is 0 until the response has started."""

    def __init__(self, send: Send, is_head: bool) -> None:
        self._send = send
        self.is_head = is_head
        self.status = 0

    async def start_response(self, status: int, size: int, headers: Headers = ()) -> None:
        """Send the headers of a response of `size` bytes. This completes a HEAD response."""
        self.status = status
        length = (b"content-length", str(size).encode())
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [length, *headers]}
        )
        if self.is_head:
            await self._send({"type": "http.response.body", "body": b""})

    async def send_block(self, block: bytes, *, is_last: bool) -> None:
        """Send a part of the body.

        Raises:
            ConnectionError: the client stopped reading.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._send(
                    {"type": "http.response.body", "body": block, "more_body": not is_last}
                )
        except TimeoutError:
            raise ConnectionError("the client stopped reading") from None

    async def send_content(
        self, status: int, content: bytes, media_type: str, headers: Headers = ()
    ) -> None:
        typed = [(b"content-type", media_type.encode()), *headers]
        await self.start_response(status, len(content), typed)
        if not self.is_head:
            await self.send_block(content, is_last=True)

    async def send_text(self, status: int, text: str, headers: Headers = ()) -> None:
        await self.send_content(status, text.encode(), "text/plain; charset=utf-8", headers)

    async def send_empty(self, status: int) -> None:
        self.status = status
        headers = [] if status == 204 else [(b"content-length", b"0")]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b""})
