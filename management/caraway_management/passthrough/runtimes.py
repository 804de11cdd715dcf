"""Sends requests to the runtimes of projects."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough import connections
from caraway_management.passthrough.connections import (
    Connections,
    Content,
    RuntimeConnections,
    RuntimeResponse,
)
from caraway_management.passthrough.headers import API_KEY, Header

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
    """Sends requests to runtimes."""

    def __init__(self, connections: Connections | None = None) -> None:
        self._connections = connections or RuntimeConnections()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Iterable[Header],
        silence_s: float,
        content: Content = None,
    ) -> AsyncIterator[RuntimeResponse]:
        """Send a request, and give the response as soon as its headers are there.

        Raises:
            UnavailableError: the runtime does not respond.
            DeadlineError: it was silent for too long.
        """
        response = await self._connections.send(method, url, headers, silence_s, content)
        try:
            yield response
        finally:
            response.close()

    async def read_json(self, runtime: Runtime, path: str, silence_s: float) -> object:
        """Return the JSON value of a path of a runtime.

        Raises:
            UnavailableError: the runtime does not respond, or not with JSON.
            DeadlineError: it was silent for too long.
        """
        headers = [(API_KEY.encode(), runtime.api_key.encode())]
        async with self.open("GET", f"{runtime.endpoint}{path}", headers, silence_s) as response:
            body = await _read(response)
        try:
            return json.loads(body)
        except ValueError as exc:
            raise connections.away() from exc

    async def read_page(self, url: str, silence_s: float) -> str:
        """Return the text of a page of metrics.

        Raises:
            UnavailableError: it cannot be read.
            DeadlineError: it was silent for too long.
        """
        async with self.open("GET", url, [], silence_s) as response:
            if response.status != 200:
                raise connections.away()
            return (await _read(response)).decode(errors="replace")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


async def _read(response: RuntimeResponse) -> bytes:
    parts, size = [], 0
    async for part in response.parts():
        size += len(part)
        if size > _MOST_PAGE_BYTES:
            raise connections.away()
        parts.append(part)
    return b"".join(parts)
