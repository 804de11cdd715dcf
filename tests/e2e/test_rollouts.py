"""New manifests, keys and certificates reach two runtimes under load, and no request fails.

Each process is replaced as a Deployment does it: a new one starts, the Service gets it, and the old
one is told to end a moment before the Service forgets it. Clients keep connections and never retry.
"""

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyarrow import flight

from caraway_core.settings import Address
from tests.kit.balancing import Balancer, KeptClient, balancing
from tests.kit.certificates import make_certificate
from tests.kit.kept_clients import FlightClient, SocketClient
from tests.kit.processes import Child, child

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
QUERY = "SELECT count(*) AS n FROM people"
BOUND = f"{QUERY} WHERE id > $1"
PAUSES_S = (0.0, 0.02, 0.1, 0.5)
DELAY_S = "4"
MANIFEST = """\
version: v1
kind: Caraway
name: rolled
secrets:
  - {{from: 'file:{folder}/keys', name: keys}}
runtime:
  auth: {{api-key: {{keys: ['${{keys:first}}:ro', '${{keys:second}}:ro']}}}}
  tls: {{certificate_file: '{folder}/tls.crt', key_file: '{folder}/tls.key'}}
datasets:
  - {{from: 'file:{folder}/people.csv', name: people}}
"""
MORE = "  - {{from: 'file:{folder}/people.csv', name: others}}\n"


async def happens(what: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not what():
            await asyncio.sleep(0.01)


async def logged(text: str, by: Sequence[Child]) -> None:
    await happens(lambda: all(text in each.logged() for each in by))


@dataclass
class Service:
    """Two runtimes behind a balancer for each of their ports."""

    folder: Path
    stack: ExitStack
    http: Balancer
    flight: Balancer
    running: list[Child] = field(default_factory=list)
    started: int = 0

    async def add(self) -> None:
        folder = self.folder / f"r{self.started}"
        folder.mkdir()
        self.started += 1
        new = child(folder, self.folder / "caraway.yaml", "--shutdown-delay", DELAY_S, secure=True)
        self.running.append(await asyncio.to_thread(self.stack.enter_context, new))
        self._route()

    async def replace_all(self) -> None:
        for _ in range(len(self.running)):
            await self.add()
            old = self.running.pop(0)
            old.signal(signal.SIGTERM)
            await logged("serving on before the stop", [old])
            self._route()
            assert await asyncio.to_thread(old.wait) == 0

    def _route(self) -> None:
        for balancer, name in ((self.http, "http"), (self.flight, "flight")):
            balancer.backends = [Address.parse(each.addresses[name]) for each in self.running]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Service]:
    (folder / "people.csv").write_text("id\n1\n2\n")
    (folder / "keys").mkdir()
    (folder / "keys" / "first").write_text("old-key")
    (folder / "keys" / "second").write_text("other-key")
    make_certificate(folder / "tls.crt", folder / "tls.key", is_authority=True)
    (folder / "caraway.yaml").write_text(MANIFEST.format(folder=folder))
    with ExitStack() as stack:
        async with AsyncExitStack() as balancers:
            http = await balancers.enter_async_context(balancing([]))
            flights = await balancers.enter_async_context(balancing([]))
            made = Service(folder, stack, http, flights)
            for _ in range(2):
                await made.add()
            yield made


@dataclass
class Load:
    """Clients of both ports with one key."""

    clients: Sequence[KeptClient | SocketClient]
    flight: FlightClient

    async def answered(self) -> None:
        every = [*self.clients, self.flight]
        before = [each.answers for each in every]
        try:
            await happens(
                lambda: all(
                    each.answers > count + 1 for each, count in zip(every, before, strict=True)
                )
            )
        except TimeoutError:
            found = [(type(each).__name__, each.answers, each.failures[:1]) for each in every]
            raise AssertionError(f"not all clients get answers: {found}") from None

    def check(self) -> None:
        assert [failure for each in self.clients for failure in each.failures] == []
        # gRPC cancels a call that crosses the end of its connection: one for each at most.
        assert all(isinstance(each, flight.FlightCancelledError | flight.FlightUnavailableError)
                   for each in self.flight.failures), self.flight.failures  # fmt: skip
        assert len(self.flight.failures) <= 4
        count = sum(each.answers for each in self.clients)
        cancelled = len(self.flight.failures)
        print(
            f"{count} answers over HTTP, {self.flight.answers} over Flight, {cancelled} cancelled"
        )


@asynccontextmanager
async def load(service: Service, key: str) -> AsyncIterator[Load]:
    url = f"https://127.0.0.1:{service.http.port}/v1/sql"
    # A server may show either certificate while one is being replaced.
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    sent = {"x-api-key": key}
    at = Address("127.0.0.1", service.http.port)
    made = Load(
        [
            *(
                KeptClient(url, QUERY, pause_s, headers=sent, tls=unverified)
                for pause_s in PAUSES_S
            ),
            *(SocketClient(at, QUERY, sent, unverified, pause_s) for pause_s in PAUSES_S),
        ],
        FlightClient(Address("127.0.0.1", service.flight.port), BOUND, key),
    )
    asking = asyncio.create_task(asyncio.to_thread(made.flight.run))
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(each.run()) for each in made.clients]
        try:
            await made.answered()
            yield made
            await made.answered()
        finally:
            made.flight.stopping.set()
            for task in running:
                task.cancel()
            await asking
    made.check()


async def test_no_request_fails_in_rollouts_of_manifest_keys_and_certificate(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as service:
        async with load(service, "old-key"):
            manifest = tmp_path / "caraway.yaml"
            manifest.write_text((MANIFEST + MORE).format(folder=tmp_path))
            await service.replace_all()
        async with load(service, "other-key") as kept:
            # Running processes take over the new key; then they are replaced, as on Kubernetes.
            (tmp_path / "keys" / "first").write_text("new-key")
            await logged("API keys reloaded", service.running)
            await kept.answered()
            async with load(service, "new-key"):
                await service.replace_all()
        async with load(service, "new-key") as kept:
            make_certificate(tmp_path / "tls.crt", tmp_path / "tls.key", is_authority=True)
            await logged("certificate reloaded", service.running)
            await kept.answered()
            await service.replace_all()
