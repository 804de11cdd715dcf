"""A fake of the runtimes that a management service reaches."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass

import httpx

from caraway_core.errors import DeadlineError
from caraway_management.passthrough import connections
from caraway_management.passthrough.connections import Content
from caraway_management.passthrough.headers import Header

Answer = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class _Response:
    """A response as the passthrough reads it."""

    response: httpx.Response

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def headers(self) -> list[Header]:
        return self.response.headers.raw

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            async for part in self.response.aiter_raw():
                yield part
        except httpx.HTTPError as exc:
            raise connections.away() from exc
        finally:
            await self.response.aclose()

    def close(self) -> None:
        """The stream is closed by what reads it."""


class _Transport(httpx.AsyncBaseTransport):
    """A transport of httpx that the passthrough can use in place of its connections."""

    async def send(
        self, method: str, url: str, headers: Iterable[Header], silence_s: float, content: Content
    ) -> _Response:
        request = httpx.Request(method, url, headers=list(headers), content=content)
        try:
            return _Response(await self.handle_async_request(request))
        except httpx.ReadTimeout as exc:
            raise DeadlineError(f"no response within {silence_s:g} s") from exc
        except httpx.HTTPError as exc:
            raise connections.away() from exc


class FakeRuntime(_Transport):
    """Answers requests, and keeps them with their bodies."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.answer: Answer = lambda request: httpx.Response(200, json={"queries": []})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        return as_streamed(self.answer(request))

    @property
    def last(self) -> httpx.Request:
        return self.requests[-1]


class Answering(_Transport):
    """Lets a function answer each request, with the body still to be read."""

    def __init__(self, answer: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return as_streamed(await self._answer(request))


def as_streamed(response: httpx.Response) -> httpx.Response:
    """Return a response with its content still to come, as it is on a connection."""
    if not response.is_stream_consumed:
        return response
    stream = httpx.ByteStream(response.content)
    return httpx.Response(response.status_code, headers=response.headers, stream=stream)
