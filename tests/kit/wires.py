"""Everything that clients send over a TCP port, as it was sent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Wire:
    """A port in front of another one, which keeps what goes to it."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self.address = ""
        self.sent = b""

    async def carry(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        answers, server = await asyncio.open_connection(self._host, self._port)

        async def requests() -> None:
            while block := await client.read(65536):
                self.sent += block
                server.write(block)
                await server.drain()
            server.write_eof()

        async def replies() -> None:
            while block := await answers.read(65536):
                back.write(block)
                await back.drain()
            back.close()

        with contextlib.suppress(OSError):
            await asyncio.gather(requests(), replies())
        server.close()
        back.close()


@contextlib.asynccontextmanager
async def recorded(address: str) -> AsyncIterator[Wire]:
    """Listen in front of the address."""
    wire = Wire(address)
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    wire.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
