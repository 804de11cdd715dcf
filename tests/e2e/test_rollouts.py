"""New manifests, keys and certificates reach two servers under load, and no request fails.

They are runtimes, or the schedulers of a cluster. Each process is replaced as a Deployment does it:
a new one starts, the Service gets it, and the old one gets SIGTERM a moment before the Service
forgets it. Clients keep connections and never retry.
"""

import asyncio
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyarrow import flight

from caraway_core.settings import Address
from tests.kit import valkey
from tests.kit.balancing import Balancer, KeptClient, balancing
from tests.kit.certificates import make_certificate
from tests.kit.kept_clients import FlightClient, SocketClient
from tests.kit.processes import child
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
QUERY = "SELECT count(*) AS n FROM people"
BOUND = f"{QUERY} WHERE id > $1"
PAUSES_S = (0.0, 0.02, 0.1, 0.5)
LEAVING = ("--shutdown-delay", "4")
END_S = 120
MANIFEST = """\
version: v1
kind: Caraway
name: rolled
secrets:
  - {{from: 'file:{folder}/keys', name: keys}}
runtime:
  scheduler: {{state_location: '{folder}/results'}}
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


@dataclass(frozen=True)
class Server:
    """A process that is up, with the addresses that it has announced."""

    popen: "subprocess.Popen[str] | subprocess.Popen[bytes]"
    addresses: Mapping[str, str]
    log: Path

    async def ended(self) -> int:
        return await asyncio.to_thread(self.popen.wait, END_S)


Start = Callable[[int], Server]
"""Starts the server with this number, and waits until it is up."""


async def logged(text: str, by: Sequence[Server]) -> None:
    await happens(lambda: all(text in each.log.read_text() for each in by))


@dataclass
class Service:
    """Two servers behind a balancer for each of their ports."""

    start: Start
    http: Balancer
    flight: Balancer
    running: list[Server] = field(default_factory=list)
    started: int = 0

    async def add(self) -> None:
        self.started += 1
        self.running.append(await asyncio.to_thread(self.start, self.started))
        self._route()

    async def replace_all(self) -> None:
        for _ in range(len(self.running)):
            await self.add()
            old = self.running.pop(0)
            old.popen.send_signal(signal.SIGTERM)
            await logged("serving on before the stop", [old])
            self._route()
            assert await old.ended() == 0

    def _route(self) -> None:
        for balancer, name in ((self.http, "http"), (self.flight, "flight")):
            balancer.backends = [Address.parse(each.addresses[name]) for each in self.running]


@contextmanager
def runtimes(folder: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(number: int) -> Server:
            own = folder / f"r{number}"
            own.mkdir()
            made = stack.enter_context(child(own, folder / "caraway.yaml", *LEAVING, secure=True))
            return Server(made.process, made.addresses, made.log)

        yield start


@contextmanager
def schedulers(folder: Path) -> Iterator[Start]:
    with (
        valkey.serving(tcp=True) as state,
        ray_cluster(folder, state=state.tcp_url) as cluster,
    ):
        yield lambda number: _scheduler(cluster, number)


def _scheduler(cluster: RayCluster, number: int) -> Server:
    manifest = cluster.folder / "caraway.yaml"
    made = cluster.begin_scheduler(f"s{number}", manifest, *LEAVING).wait_up()
    return Server(made.popen, made.facts, made.log)


@asynccontextmanager
async def serving(
    folder: Path, starting: Callable[[Path], AbstractContextManager[Start]]
) -> AsyncIterator[Service]:
    (folder / "people.csv").write_text("id\n1\n2\n")
    (folder / "keys").mkdir()
    (folder / "keys" / "first").write_text("old-key")
    (folder / "keys" / "second").write_text("other-key")
    make_certificate(folder / "tls.crt", folder / "tls.key", is_authority=True)
    (folder / "caraway.yaml").write_text(MANIFEST.format(folder=folder))
    with starting(folder) as start:
        async with AsyncExitStack() as balancers:
            http = await balancers.enter_async_context(balancing([]))
            flights = await balancers.enter_async_context(balancing([]))
            made = Service(start, http, flights)
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


@pytest.mark.parametrize("starting", [runtimes, schedulers])
async def test_no_request_fails_in_rollouts_of_manifest_keys_and_certificate(
    tmp_path: Path, starting: Callable[[Path], AbstractContextManager[Start]]
) -> None:
    async with serving(tmp_path, starting) as service:
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
