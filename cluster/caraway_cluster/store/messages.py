"""Requests and answers of ASGI in the words of a store; no wait on a client is without an end."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

PATIENCE_S = 30.0
"""How long a client may take for its next block, or to take ours."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, text: str, headers: Headers = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = tuple(headers)


class Body:
    """The bytes of a request as they arrive."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_read = False

    async def blocks(self, least_bytes: int) -> list[bytes]:
        """Return what comes next, of so many bytes unless it is the end; nothing after it.

        Raises:
            Refusal: it stopped arriving.
            ConnectionError: the client went away.
        """
        found: list[bytes] = []
        size = 0
        while size < least_bytes and not self.is_read:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    message = await self._receive()
            except TimeoutError:
                raise Refusal(408, "the chunk stopped arriving; send it again") from None
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client went away")
            block = message.get("body", b"")
            if block:
                found.append(block)
                size += len(block)
            self.is_read = not message.get("more_body", False)
        return found


class Reply:
    """The answer to one request; `status` is 0 until it has begun."""

    def __init__(self, send: Send, is_head: bool) -> None:
        self._send = send
        self.is_head = is_head
        self.status = 0

    async def begin(self, status: int, size: int, headers: Headers = ()) -> None:
        """Send the head of an answer that has so many bytes; for HEAD this is all of it."""
        self.status = status
        length = (b"content-length", str(size).encode())
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [length, *headers]}
        )
        if self.is_head:
            await self._send({"type": "http.response.body", "body": b""})

    async def part(self, block: bytes, *, is_last: bool) -> None:
        """Send some of the answer.

        Raises:
            ConnectionError: the client takes nothing any more.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._send(
                    {"type": "http.response.body", "body": block, "more_body": not is_last}
                )
        except TimeoutError:
            raise ConnectionError("the client stopped reading") from None

    async def whole(self, status: int, content: bytes, kind: str, headers: Headers = ()) -> None:
        await self.begin(status, len(content), [(b"content-type", kind.encode()), *headers])
        if not self.is_head:
            await self.part(content, is_last=True)

    async def text(self, status: int, text: str, headers: Headers = ()) -> None:
        await self.whole(status, text.encode(), "text/plain; charset=utf-8", headers)

    async def empty(self, status: int) -> None:
        self.status = status
        headers = [] if status == 204 else [(b"content-length", b"0")]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b""})
