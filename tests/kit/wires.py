"""Records everything that clients send over a TCP port."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Wire:
    """A proxy port that records the forwarded bytes."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._carrying: set[asyncio.Task[None]] = set()
        self.address = ""
        self.sent = b""

    def accept(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._carrying.add(asyncio.ensure_future(self._carry(client, back)))

    async def end(self) -> None:
        """Close every connection."""
        for task in self._carrying:
            task.cancel()
        if self._carrying:
            await asyncio.wait(self._carrying)

    async def _carry(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        answers, server = await asyncio.open_connection(self._host, self._port)

        async def requests() -> None:
            while block := await client.read(65536):
                self.sent += block
                server.write(block)

        async def replies() -> None:
            while block := await answers.read(65536):
                back.write(block)

        ways = [asyncio.ensure_future(requests()), asyncio.ensure_future(replies())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for writer in (server, back):
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()


@contextlib.asynccontextmanager
async def recorded(address: str) -> AsyncIterator[Wire]:
    """Listen as a proxy for the address."""
    wire = Wire(address)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    wire.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        await wire.end()
