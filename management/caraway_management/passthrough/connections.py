"""Connections to the runtimes of projects."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import aiohttp
from yarl import URL

from caraway_core.errors import DeadlineError, UnavailableError
from caraway_management.passthrough.headers import LENGTH, Header

_CONNECT_S = 5.0
_RETRY_AFTER_S = 5
_MOST_CONNECTIONS = 500
_KEEP_ALIVE_S = 30.0
_LONGEST_HEADER = 64 * 1024
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
Content = bytes | AsyncIterator[bytes] | None
"""The body of a request: as one, or in parts as they arrive."""


class RuntimeResponse(Protocol):
    """A response whose body is still to come."""

    @property
    def status(self) -> int:
        """The status."""

    @property
    def headers(self) -> Sequence[Header]:
        """The headers as they were sent."""

    def parts(self) -> AsyncIterator[bytes]:
        """Return the parts of the body as they arrive, as they were sent.

        Raises:
            UnavailableError: the connection breaks.
            DeadlineError: the runtime is silent for too long.
        """

    def close(self) -> None:
        """Give the connection back, or end it if the body was not read to its end."""


class Connections(Protocol):
    """Sends requests."""

    async def send(
        self, method: str, url: str, headers: Iterable[Header], silence_s: float, content: Content
    ) -> RuntimeResponse:
        """Send a request; return once the headers of its response are there.

        Raises:
            UnavailableError: the runtime does not respond.
            DeadlineError: it is silent for too long.
        """

    async def aclose(self) -> None:
        """Close the connections."""


class RuntimeConnections:
    """Keeps connections, and sends requests over them.

    No redirect is followed, no proxy of the environment is used, and bodies stay compressed.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, url: str, headers: Iterable[Header], silence_s: float, content: Content
    ) -> RuntimeResponse:
        """See `Connections.send`."""
        # Of a body that is there as a whole, or not at all, the client says the length: the runtime
        # would take the next request on the connection for a body that was declared and not sent.
        is_in_parts = not isinstance(content, bytes | None)
        sent = [
            (_text(name), _text(value))
            for name, value in headers
            if is_in_parts or name.lower() != LENGTH
        ]
        with _errors(silence_s):
            response = await self._opened().request(
                method,
                URL(url, encoded=True),
                headers=sent,
                data=content or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    connect=_CONNECT_S,
                    sock_connect=min(_CONNECT_S, silence_s),
                    sock_read=silence_s,
                ),
            )
        return _Response(response, silence_s)

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


class _Response:
    def __init__(self, response: aiohttp.ClientResponse, silence_s: float) -> None:
        self._response = response
        self._silence_s = silence_s
        self.status = response.status
        self.headers = response.raw_headers

    async def parts(self) -> AsyncIterator[bytes]:
        with _errors(self._silence_s):
            while part := await self._response.content.readany():
                yield part

    def close(self) -> None:
        self._response.release()


def _text(value: bytes) -> str:
    """Return the text whose UTF-8 encoding is the same bytes, if there is one."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def away() -> UnavailableError:
    """Return the failure of a request to a runtime that is away."""
    return UnavailableError(
        "the runtime of the project does not respond; try again", _RETRY_AFTER_S
    )


@contextmanager
def _errors(silence_s: float) -> Iterator[None]:
    try:
        yield
    except aiohttp.ConnectionTimeoutError as exc:
        raise away() from exc
    except TimeoutError as exc:
        raise DeadlineError(
            f"the runtime of the project did not respond within {silence_s:g} s"
        ) from exc
    # An address that the client cannot use is a ValueError.
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        raise away() from exc
