"""Connections to providers: a transport for the `httpx2` of their clients, over `aiohttp`.

The transport that `httpx2` brings looks at every connection for each request, and parses in
Python. With hundreds of streams that costs more than all the rest of a call.
"""

import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import httpx2
from yarl import URL

_UNLIMITED = 0
"""Connections: the limits of each model say how many calls run at once."""
_KEEP_ALIVE_S = 4.0
"""Less than the 5 s after which common servers close a connection that is idle."""
_PROXIED = frozenset({"http", "https", "all"})
_LONGEST_HEADER = 64 * 1024
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
MOST_BYTES = 64 * 1024 * 1024
"""Of an answer that is not a stream of events, after it was decompressed."""
_ENCODINGS = "gzip, deflate"
_DECODED = (b"content-encoding", b"content-length")
_EVENTS = "text/event-stream"
_ERRORS: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout),
    (TimeoutError, httpx2.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.InvalidURL, httpx2.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx2.UnsupportedProtocol),
    (aiohttp.ServerDisconnectedError, httpx2.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx2.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx2.RemoteProtocolError),
    (aiohttp.ClientError, httpx2.NetworkError),
    (OSError, httpx2.NetworkError),
)
"""The first that fits counts."""


def http_client(context: ssl.SSLContext | None, socket: str | None = None) -> httpx2.AsyncClient:
    """Return a client that verifies with this context, or connects to this Unix socket."""
    if socket is None:
        context = context or httpx2.create_ssl_context()
        if not _PROXIED.isdisjoint(urllib.request.getproxies()):
            # That client knows which addresses go through which proxy.
            return httpx2.AsyncClient(verify=context, follow_redirects=True)
    return httpx2.AsyncClient(transport=PooledTransport(context, socket), follow_redirects=True)


class PooledTransport(httpx2.AsyncBaseTransport):
    """Keeps connections and sends requests over them."""

    def __init__(self, context: ssl.SSLContext | None, socket: str | None = None) -> None:
        self._context = context
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return once the headers of its response are there.

        Raises:
            httpx2.TransportError: there is no response.
        """
        session = self._session
        if session is None:
            # It needs a loop, which there is none of where models are built.
            session = self._session = self._made()
        timeout = request.extensions.get("timeout", {})
        with _errors():
            response = await session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=_offering(request.headers),
                data=await request.aread() or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    connect=timeout.get("connect"),
                    sock_read=timeout.get("read"),
                ),
            )
        headers = [each for each in response.raw_headers if each[0].lower() not in _DECODED]
        return httpx2.Response(
            response.status, headers=headers, stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _made(self) -> aiohttp.ClientSession:
        connector: aiohttp.BaseConnector
        if self._socket is not None:
            connector = aiohttp.UnixConnector(
                self._socket, limit=_UNLIMITED, keepalive_timeout=_KEEP_ALIVE_S
            )
        else:
            connector = aiohttp.TCPConnector(
                ssl=self._context or True, limit=_UNLIMITED, keepalive_timeout=_KEEP_ALIVE_S
            )
        return aiohttp.ClientSession(
            connector=connector,
            # It decompresses a little at a time, as it is read. The client above it decompresses
            # all that has arrived at once, which may become a thousand times as much.
            auto_decompress=True,
            # The client above it does this.
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_OWN_HEADERS,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )


def _offering(headers: httpx2.Headers) -> list[tuple[str, str]]:
    """Return the headers of a request that offers the encodings which can be decoded here."""
    others = [each for each in headers.multi_items() if each[0].lower() != "accept-encoding"]
    offered = headers.get("accept-encoding", "identity")
    return [*others, ("accept-encoding", offered if offered == "identity" else _ENCODINGS)]


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = self._response.content
        is_stream = self._response.content_type == _EVENTS
        size = 0
        with _errors():
            while part := await content.readany():
                size += len(part)
                if size > MOST_BYTES and not is_stream:
                    raise httpx2.RemoteProtocolError("the answer is larger than 64 MiB")
                yield part

    async def aclose(self) -> None:
        # This closes the connection if the body was not read to its end.
        self._response.release()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        for found, told in _ERRORS:
            if isinstance(exc, found):
                # The cause of an error of aiohttp is what says more: why TLS or a socket failed.
                raise told(str(exc)) from (exc.__cause__ or exc)
        raise
