"""A TCP proxy for a Unix socket that can disconnect, drop responses, or use TLS."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path


class Proxy:
    """Forwards bytes between its port and the socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.connections = 0
        self.is_up = True
        self.answers_to_swallow: bytes | None = None
        """The response to a request with these bytes is dropped, with its connection."""
        self.swallowed = 0
        """How many messages arrived on silent connections."""
        self._silent: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Close every connection; new ones are accepted while `is_up`."""
        for writer in list(self._writers):
            writer.transport.abort()

    def silence(self) -> None:
        """Answer nothing on the present connections, as a host that vanished; accept new ones."""
        self._silent |= self._writers

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_up:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            above, below = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, below}
        swallow = asyncio.Event()
        with contextlib.suppress(OSError):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._requests(reader, below, swallow))
                tasks.create_task(self._answers(above, writer, swallow))
        for one in (writer, below):
            self._writers.discard(one)
            one.transport.abort()

    async def _requests(
        self, reader: asyncio.StreamReader, below: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            if below in self._silent:
                self.swallowed += 1
                continue
            if self.answers_to_swallow and self.answers_to_swallow in data:
                self.answers_to_swallow = None
                swallow.set()
            below.write(data)
        below.transport.abort()

    async def _answers(
        self, above: asyncio.StreamReader, writer: asyncio.StreamWriter, swallow: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await above.read(65536):
                if swallow.is_set():
                    break
                writer.write(data)
        writer.transport.abort()


@contextlib.asynccontextmanager
async def proxying(socket: Path, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    proxy = Proxy(socket)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
