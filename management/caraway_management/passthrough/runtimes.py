"""Sends requests to the runtimes of projects."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from caraway_core.errors import DeadlineError, UnavailableError
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough.connections import RuntimeTransport
from caraway_management.passthrough.headers import API_KEY, Header

_CONNECT_S = 5.0
_RETRY_AFTER_S = 5
_MOST_PAGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime of a project: where it is, and the key that it accepts."""

    project_id: int
    endpoint: str
    api_key: str = field(repr=False)


def address_of(endpoint: str | None, *, is_paused: bool) -> str:
    """Return the address of the runtime of a project. It never comes from a request.

    Raises:
        RefusedError: the project is paused, or is not deployed.
    """
    if is_paused:
        raise refusals.conflict("the project is paused; resume it", "project_paused")
    endpoint = endpoint or ""
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise not_deployed()
    return endpoint.rstrip("/")


def not_deployed() -> RefusedError:
    """Return the refusal of a request to a project that has no runtime."""
    return refusals.conflict(
        "the project has no runtime yet; deploy it, and wait until it has succeeded",
        "project_not_deployed",
    )


class Runtimes:
    """Keeps connections to runtimes, and sends requests through them."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        # Without a client around it, neither a proxy of the environment nor a redirect leads
        # anywhere else.
        self._transport = transport or RuntimeTransport()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Iterable[Header],
        silence_s: float,
        content: bytes | AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request, and give the response as soon as its headers are there.

        Raises:
            UnavailableError: the runtime does not respond.
            DeadlineError: it was silent for too long.
        """
        times = httpx.Timeout(silence_s, connect=min(_CONNECT_S, silence_s), pool=_CONNECT_S)
        request = httpx.Request(
            method, url, headers=list(headers), content=content,
            extensions={"timeout": times.as_dict()},
        )  # fmt: skip
        try:
            response = await self._transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as exc:
            raise _away() from exc
        except httpx.TimeoutException as exc:
            raise DeadlineError(
                f"the runtime of the project did not respond within {silence_s:g} s"
            ) from exc
        except httpx.HTTPError as exc:
            raise _away() from exc
        try:
            yield response
        finally:
            await response.aclose()

    async def read_json(self, runtime: Runtime, path: str, silence_s: float) -> object:
        """Return the JSON value of a path of a runtime.

        Raises:
            UnavailableError: the runtime does not respond, or not with JSON.
        """
        headers = [(API_KEY.encode(), runtime.api_key.encode())]
        async with self.open("GET", f"{runtime.endpoint}{path}", headers, silence_s) as response:
            body = await _read(response)
            try:
                return httpx.Response(response.status_code, content=body).json()
            except ValueError as exc:
                raise _away() from exc

    async def read_page(self, url: str, silence_s: float) -> str:
        """Return the text of a page of metrics.

        Raises:
            UnavailableError: it cannot be read.
        """
        async with self.open("GET", url, [], silence_s) as response:
            if response.status_code != 200:
                raise _away()
            return (await _read(response)).decode(errors="replace")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


async def _read(response: httpx.Response) -> bytes:
    parts, size = [], 0
    try:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > _MOST_PAGE_BYTES:
                raise _away()
            parts.append(part)
    except httpx.HTTPError as exc:
        raise _away() from exc
    return b"".join(parts)


def _away() -> UnavailableError:
    return UnavailableError(
        "the runtime of the project does not respond; try again", _RETRY_AFTER_S
    )
