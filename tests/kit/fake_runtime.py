"""A transport in place of the runtimes that a management service reaches."""

from collections.abc import Awaitable, Callable

import httpx

Answer = Callable[[httpx.Request], httpx.Response]


class FakeRuntime(httpx.AsyncBaseTransport):
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


class Answering(httpx.AsyncBaseTransport):
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
