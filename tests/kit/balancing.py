"""A TCP load balancer that stands in for a Service, and clients that keep connections."""

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from caraway_core.settings import Address


class Balancer:
    """Gives each new connection to the next backend; connections that exist stay where they are."""

    def __init__(self, backends: Sequence[Address]) -> None:
        self.backends = list(backends)
        self.port = 0
        self._turns = itertools.count()
        self._writers: set[asyncio.StreamWriter] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = self.backends[next(self._turns) % len(self.backends)]
        self._writers.add(writer)
        try:
            above, below = await asyncio.open_connection(backend.host, backend.port)
            self._writers.add(below)
            await asyncio.gather(_copy(reader, below), _copy(above, writer))
            self._writers.discard(below)
        except OSError:
            writer.transport.abort()
        finally:
            self._writers.discard(writer)

    def close(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


@contextlib.asynccontextmanager
async def balancing(backends: Sequence[Address]) -> AsyncIterator[Balancer]:
    balancer = Balancer(backends)
    server = await asyncio.start_server(balancer.accept, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]
    try:
        yield balancer
    finally:
        server.close()
        balancer.close()
        await server.wait_closed()


@dataclass(slots=True)
class KeptClient:
    """A client that keeps one connection and never retries; `pause_s` is between requests."""

    url: str
    content: str
    pause_s: float
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | bool = True
    answers: int = 0
    closes: int = 0
    """Answers that announced the end of their connection."""
    failures: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Send requests until cancelled."""
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        async with httpx.AsyncClient(
            limits=limits, timeout=60, trust_env=False, headers=self.headers, verify=self.tls
        ) as http:
            while True:
                try:
                    answer = await http.post(self.url, content=self.content)
                except httpx.HTTPError as exc:
                    self.failures.append(repr(exc))
                    continue
                if answer.status_code == 200:
                    self.answers += 1
                else:
                    self.failures.append(f"{answer.status_code} {answer.text}")
                self.closes += answer.headers.get("connection") == "close"
                await asyncio.sleep(self.pause_s)
