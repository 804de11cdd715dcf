"""Clients that keep a connection and never retry, over bare sockets and over Flight."""

import asyncio
import ssl
import threading
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import flight

from caraway.flight.bound_rows import ticket
from caraway_core.settings import Address

_PARAMETERS = pa.record_batch([pa.array([0])], names=["1"])


@dataclass(slots=True)
class SocketClient:
    """Speaks HTTP/1.1 over one socket, as a client without a connection pool does."""

    address: Address
    content: str
    headers: dict[str, str]
    tls: ssl.SSLContext | None = None
    pause_s: float = 0.0
    answers: int = 0
    closes: int = 0
    """Answers that announced the end of their connection."""
    failures: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Send requests until cancelled."""
        while True:
            host, port = self.address.host, self.address.port
            reader, writer = await asyncio.open_connection(host, port, ssl=self.tls)
            try:
                while not await self._ask(reader, writer):
                    await asyncio.sleep(self.pause_s)
            except (OSError, asyncio.IncompleteReadError) as exc:
                self.failures.append(repr(exc))
            finally:
                writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send a request; return whether its answer announces the end of the connection."""
        lines = ["POST /v1/sql HTTP/1.1", f"host: {self.address}", "accept: application/json",
                 f"content-length: {len(self.content)}",
                 *(f"{name}: {value}" for name, value in self.headers.items())]  # fmt: skip
        writer.write("\r\n".join([*lines, "", self.content]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        named = dict(line.split(": ", 1) for line in head[1:] if line)
        if "content-length" in named:
            body = await reader.readexactly(int(named["content-length"]))
        else:
            body = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        if " 200 " in head[0]:
            self.answers += 1
        else:
            self.failures.append(f"{head[0]} {body.decode()}")
        is_last = named.get("connection") == "close"
        self.closes += is_last
        return is_last


@dataclass(slots=True)
class FlightClient:
    """Sends one call after another over one channel of gRPC, each for a statement over 0."""

    address: Address
    sql: str
    token: str
    answers: int = 0
    failures: list[Exception] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Send calls until `stopping` is set."""
        options = flight.FlightCallOptions(
            headers=[(b"authorization", f"Bearer {self.token}".encode())], timeout=60
        )
        asked = flight.Ticket(ticket(self.sql, _PARAMETERS))
        where = f"grpc+tls://{self.address}"
        with flight.connect(where, disable_server_verification=True) as client:
            while not self.stopping.is_set():
                try:
                    client.do_get(asked, options).read_all()
                except (pa.ArrowException, OSError) as exc:
                    self.failures.append(exc)
                else:
                    self.answers += 1
