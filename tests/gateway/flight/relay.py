"""A way to a server that can be cut in the middle of a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from caraway_core.settings import Address


class Relay:
    """Passes bytes on between clients and a server."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.address = target

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """End every connection at once; any thread may do it."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    async def aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut()
        await self._server.wait_closed()

    async def _cut(self) -> None:
        for end in list(self._ends):
            end.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, away = await asyncio.open_connection(self._target.host, self._target.port)
        self._ends |= {writer, away}
        try:
            await asyncio.gather(_passed(reader, away), _passed(onward, writer))
        finally:
            self._ends -= {writer, away}
            for end in (writer, away):
                end.close()


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def relayed(target: Address) -> AsyncIterator[Relay]:
    relay = Relay(target)
    await relay.start()
    try:
        yield relay
    finally:
        await relay.aclose()
