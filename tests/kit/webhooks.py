"""A real receiver of webhooks on this machine, which keeps the requests."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp.web


@dataclass(frozen=True, slots=True)
class Received:
    """A request to the receiver. Its headers are in lower case."""

    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """The requests that the receiver got."""

    url: str = ""
    requests: list[Received] = field(default_factory=list)

    async def take(self, request: aiohttp.web.Request) -> aiohttp.web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Received(headers, await request.read()))
        return aiohttp.web.Response(status=204)


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Receive webhooks on 127.0.0.1 until the block ends."""
    receiver = Receiver()
    application = aiohttp.web.Application()
    application.router.add_post("/hook", receiver.take)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    try:
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        receiver.url = f"http://{host}:{port}/hook"
        yield receiver
    finally:
        await runner.cleanup()
