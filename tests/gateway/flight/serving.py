"""A Flight endpoint over tables in memory, and a client of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from caraway_acceleration.sources import PassthroughSources
from caraway_core.ids import CatalogVersion, ExecutorId, NodeId, TableName
from caraway_core.manifest.values.runtime import (
    FlightSettings,
    ParallelReadSettings,
    RuntimeSettings,
)
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.settings import Address
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_gateway.flight import FlightEndpoint
from caraway_gateway.services import Operating, Services
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_scheduler.queries.admission import Admission
from caraway_scheduler.queries.cache import ResultsCache
from caraway_scheduler.queries.recording import StatementRecords
from caraway_scheduler.queries.service import QueryService, StatementLimits
from caraway_serving.access import Keyring
from caraway_serving.tallies import ApiTallies
from caraway_serving.tls import ServerTls
from tests.kit.engine import snapshot
from tests.kit.jobs import FakeJobService

ANY_PORT = Address("127.0.0.1", 0)
KEYS = Keyring([("reader", "ro"), ("writer", "rw")])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Serving:
    """A running endpoint."""

    endpoint: FlightEndpoint
    services: Services
    address: Address

    async def ask(self, question: Callable[[flight.FlightClient], T], **options: Any) -> T:
        """Put a question to the server from a thread of its own: the client blocks."""

        def blocking() -> T:
            with client(self.address, **options) as connected:
                return question(connected)

        return await asyncio.to_thread(blocking)

    async def idle(self) -> None:
        """Wait until no statement is under way."""
        async with asyncio.timeout(60):
            await self.services.queries.active.wait_idle()


@contextmanager
def client(address: Address, scheme: str = "grpc+tcp", **options: Any) -> Iterator[Any]:
    # A proxy of the machine does not lead to this machine.
    direct = [("grpc.enable_http_proxy", 0)]
    with flight.connect(f"{scheme}://{address}", generic_options=direct, **options) as connected:
        yield connected


@asynccontextmanager
async def serving(
    tables: Mapping[str, TableSpec | str] | None = None,
    *,
    writable: tuple[str, ...] = (),
    keys: Keyring | None = None,
    cache: ResultsCache | None = None,
    max_running: int | None = None,
    timeout_s: float | None = None,
    address: Address = ANY_PORT,
    tls: ServerTls | None = None,
    service: FakeJobService | None = None,
    max_body_bytes: int = 1 << 20,
    max_message_bytes: int = 1 << 24,
    dispatch: Dispatch | None = None,
    operating: Operating | None = None,
    parallel_reads: ParallelReadSettings | None = None,
) -> AsyncIterator[Serving]:
    """Serve the tables until the block ends; only with a job service there are jobs."""
    if dispatch is None:
        dispatch = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("here"))
        assert await dispatch.install(snapshot(tables or {})) == {}
    history = TaskHistory(HistorySettings(), NodeId("here"), lambda: 0)
    tallies = ApiTallies()
    names = frozenset(map(TableName, writable))
    queries = QueryService(
        dispatch,
        lambda: (CatalogVersion(1), names),
        Admission(max_running, 100, 5),
        cache,
        StatementRecords(history, tallies),
        StatementLimits(timeout_s),
    )
    # Flight asks little of accelerated datasets and the manifest, and of jobs only the service.
    unused: Any = None
    accelerations: Any = SimpleNamespace(sources=PassthroughSources)
    jobs: Any = SimpleNamespace(service=service)
    catalog = Catalog(dispatch, Path("/nowhere"), {}, 1, unused)
    settings = FlightSettings(parallel_reads=parallel_reads)
    manifest: Any = SimpleNamespace(
        current=SimpleNamespace(runtime=RuntimeSettings(flight=settings))
    )
    services = Services(
        manifest,
        catalog,
        queries,
        jobs,
        accelerations,
        dispatch,
        history,
        tallies,
        unused,
        unused,
        unused,
        unused,
        unused,
        unused,
        unused,
        unused,
        unused,
        unused,
        keyring=keys,
        max_body_bytes=max_body_bytes,
        max_message_bytes=max_message_bytes,
        operating=operating,
    )
    endpoint = FlightEndpoint(services, asyncio.get_running_loop(), address, tls)
    try:
        yield Serving(endpoint, services, endpoint.start())
    finally:
        await endpoint.stop(5)
        await catalog.aclose()
        await dispatch.aclose()


def command(sql: str | bytes) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(sql)


def bearer(token: str) -> flight.FlightCallOptions:
    return headers(authorization=f"Bearer {token}")


def headers(**values: str) -> flight.FlightCallOptions:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in values.items()]
    return flight.FlightCallOptions(headers=pairs, timeout=60)


def query(sql: str, options: flight.FlightCallOptions | None = None) -> Callable[[Any], pa.Table]:
    """The two calls that clients make for one statement."""

    def run(connected: Any) -> pa.Table:
        info = connected.get_flight_info(command(sql), options)
        rows = connected.do_get(info.endpoints[0].ticket, options).read_all()
        assert rows.schema == info.schema
        return rows

    return run
