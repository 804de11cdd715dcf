"""An HTTP server that sends the same bytes for each request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ByteServer:
    """Sends bytes once a request has arrived, and counts connections."""

    def __init__(self, reply: bytes, closes: bool) -> None:
        self.reply = reply
        self.closes = closes
        self.connections = 0
        self.heads: list[bytes] = []
        self.body = bytearray()
        """What came after the headers."""
        self.ended = asyncio.Event()
        self.at_work: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.at_work.add(asyncio.current_task())
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                if b"chunked" in self.heads[-1].lower():
                    self.body += await reader.readuntil(b"0\r\n\r\n")
                writer.write(self.reply)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()
        writer.close()


@asynccontextmanager
async def serving(reply: bytes, *, closes: bool = False) -> AsyncIterator[tuple[str, ByteServer]]:
    """Serve until the block ends; all connections must have ended by then."""
    server = ByteServer(reply, closes)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", server
    await asyncio.gather(*filter(None, server.at_work))
