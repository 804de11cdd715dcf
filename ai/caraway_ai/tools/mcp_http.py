"""The HTTP client for MCP servers of others, whose answers are bounded.

The library of MCP reads an answer whole, and parses it in the event loop.
"""

from collections.abc import AsyncIterator, Mapping

import httpx2
from mcp.shared._httpx_utils import create_mcp_http_client

MOST_BYTES = 8 * 1024 * 1024
"""Of an answer that is no stream of events; results of tools may have much less."""
_EVENTS = "text/event-stream"


def http_client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client, which its user closes."""
    # What is sent compressed may be a thousand times as large.
    client = create_mcp_http_client(headers={"accept-encoding": "identity", **headers})
    client.event_hooks = {"response": [_bound]}
    return client


async def _bound(response: httpx2.Response) -> None:
    if not response.headers.get("content-type", "").startswith(_EVENTS):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedBody(response.stream)


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that fails when it is too large."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._body:
            size += len(part)
            if size > MOST_BYTES:
                raise httpx2.RemoteProtocolError(f"the answer has more than {MOST_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()
