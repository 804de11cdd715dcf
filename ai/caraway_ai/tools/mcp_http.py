"""The HTTP client for MCP servers of others, whose answers are bounded.

The library of MCP reads an answer whole, and parses it in the event loop.
"""

from collections.abc import AsyncIterator, Mapping

import httpx2
from mcp.shared._httpx_utils import create_mcp_http_client

MOST_BYTES = 8 * 1024 * 1024
"""Of an answer, or of one event of a stream; results of tools may have much less."""
_EVENTS = "text/event-stream"
_ENDS_OF_EVENTS = b"\n\n", b"\r\r", b"\n\r\n"


def http_client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client, which its user closes."""
    # A compressed body may become a thousand times as large.
    client = create_mcp_http_client(headers={"accept-encoding": "identity", **headers})
    client.event_hooks = {"response": [_bound]}
    return client


async def _bound(response: httpx2.Response) -> None:
    is_events = response.headers.get("content-type", "").startswith(_EVENTS)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedBody(response.stream, is_events)


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that fails when it, or one of its events, is too large."""

    def __init__(self, body: httpx2.AsyncByteStream, is_events: bool) -> None:
        self._body = body
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        last = b""
        async for part in self._body:
            size += len(part)
            if self._is_events:
                # An end may be in two parts.
                read = last + part
                end = max(read.rfind(each) for each in _ENDS_OF_EVENTS)
                size = len(read) - end if end >= 0 else size
                last = read[-2:]
            if size > MOST_BYTES:
                what = "an event of the answer" if self._is_events else "the answer"
                raise httpx2.RemoteProtocolError(f"{what} has more than {MOST_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()
