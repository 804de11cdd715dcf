"""A cluster in this process whose executors serve Flight, and its Flight endpoint."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from caraway_core.ids import ExecutorId
from caraway_core.manifest.values.runtime import ParallelReadSettings
from caraway_core.settings import Address, ExecutorFlight
from caraway_core.tables import TableSpec
from caraway_executor.endpoints.part_server import PartServer
from caraway_executor.part_options import PartServing
from caraway_executor.tasks.worker import Worker
from caraway_gateway.services import Operating
from caraway_serving.access import Keyring
from caraway_serving.tls import ServerTls
from tests.gateway.flight.serving import Serving, client, command, serving
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.deadlines import eventually

TOKEN = "the token of this cluster"


@dataclass(frozen=True, slots=True)
class ParallelCluster:
    """A cluster, its endpoint, and those of its executors."""

    cluster: InProcessCluster
    serving: Serving
    parts: Mapping[ExecutorId, PartServer]

    def worker(self, executor_id: str) -> Worker:
        return self.cluster.fleet._lives[ExecutorId(executor_id)].worker

    @property
    def offered(self) -> int:
        """The number of offers that the executors hold."""
        return sum(len(self.worker(each).offers) for each in self.parts)

    async def info(self, sql: str, options: Any = None) -> flight.FlightInfo:
        return await self.serving.ask(lambda to: to.get_flight_info(command(sql), options))


async def settled(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""

    async def look() -> bool:
        return is_so()

    await eventually(look, what)


def read(endpoint: flight.FlightEndpoint, options: Any = None, **how: Any) -> pa.Table:
    """Read an endpoint where it is; blocks."""
    address = Address.parse(endpoint.locations[0].uri.decode().partition("://")[2])
    with client(address, **how) as connected:
        return connected.do_get(endpoint.ticket, options).read_all()


async def read_all(endpoints: Sequence[flight.FlightEndpoint], options: Any = None) -> pa.Table:
    """Read all endpoints at once."""
    reading = [asyncio.to_thread(read, each, options) for each in endpoints]
    return pa.concat_tables(await asyncio.gather(*reading))


@asynccontextmanager
async def parallel(
    folder: Path,
    tables: Mapping[str, TableSpec | str],
    *,
    keys: Keyring | None = None,
    tls: ServerTls | None = None,
    certificate: tuple[Path, Path] | None = None,
    executors: int = 2,
    ticket_ttl_s: float = 60.0,
    serving_at: Sequence[str] | None = None,
) -> AsyncIterator[ParallelCluster]:
    """Serve tables; `serving_at` names the executors that serve Flight, by default all."""
    token_file = folder / "token"
    token_file.write_text(TOKEN)
    wanted = ExecutorFlight(Address("127.0.0.1", 0), None, *(certificate or ()))
    options = PartServing.from_options(wanted, "127.0.0.1", token_file)
    async with in_process_cluster(folder, tables, executors=executors) as cluster:
        parts = {}
        loop = asyncio.get_running_loop()
        for executor_id in cluster.fleet._lives:
            if serving_at is None or executor_id in serving_at:
                worker = cluster.fleet._lives[executor_id].worker
                parts[executor_id] = PartServer(options, executor_id, worker.offers, loop)
                worker.serves_at(parts[executor_id].place)
        try:
            await settled(
                lambda: (
                    sum(each.flight is not None for each in cluster.membership.ready())
                    == len(parts)
                ),
                "executors say where they serve",
            )
            async with serving(
                keys=keys,
                tls=tls,
                dispatch=cluster.dispatch,
                operating=Operating(cluster.membership, TOKEN, cluster.dispatch.read_offer),
                parallel_reads=ParallelReadSettings(enabled=True, ticket_ttl_s=ticket_ttl_s),
            ) as served:
                yield ParallelCluster(cluster, served, parts)
        finally:
            for each in parts.values():
                await asyncio.to_thread(each.stop)
