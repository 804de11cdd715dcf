"""Connections to runtimes: a transport for `httpx` over `aiohttp`.

The transport that `httpx` brings looks at every connection for each request, and parses in Python:
that takes five times as long.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import httpx
from yarl import URL

_MOST_CONNECTIONS = 500
_KEEP_ALIVE_S = 30.0
_LONGEST_HEADER = 64 * 1024
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
    (OSError, httpx.NetworkError),
    (ValueError, httpx.UnsupportedProtocol),
)
"""The first that fits counts."""


class RuntimeTransport(httpx.AsyncBaseTransport):
    """Keeps connections and sends requests over them. Bodies pass as they are, also compressed."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return once the headers of its response are there.

        Raises:
            httpx.TransportError: there is no response.
        """
        timeout = request.extensions["timeout"]
        # One that is there as a whole leaves with the headers.
        body = b"".join(request.stream) if isinstance(request.stream, httpx.ByteStream) else None
        with _errors():
            response = await self._opened().request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=[
                    each
                    for each in request.headers.multi_items()
                    # It is set by what sends the body.
                    if each[0].lower() != "transfer-encoding"
                ],
                data=request.stream if body is None else body or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    connect=timeout["pool"],
                    sock_connect=timeout["connect"],
                    sock_read=timeout["read"],
                ),
            )
        return httpx.Response(
            response.status, headers=response.raw_headers, stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        # It needs a loop, which there is none of where the application is built.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=_MOST_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_S
                ),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=_OWN_HEADERS,
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return self._session


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors():
            while part := await self._response.content.readany():
                yield part

    async def aclose(self) -> None:
        # This closes the connection if the body was not read to its end.
        self._response.release()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        for found, raised in _ERRORS:
            if isinstance(exc, found):
                raise raised(str(exc)) from exc
        raise
