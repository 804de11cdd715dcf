"""Tables of other runtimes of Caraway, as datasets and as a catalog that changes."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.settings import Address
from caraway_core.tables import MemoryTable, RemoteTable
from caraway_plugins.sources.flightsql.source import CarawaySource
from tests.gateway.flight.serving import KEYS, Serving, serving
from tests.kit.engine import snapshot


def request(address: Address, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of a runtime."""
    given = {"caraway_endpoint": f"grpc://{address}", **params}
    root = Path("/")
    return SourceRequest(TableName("t"), "caraway", path, given, (), "read", root, root)


def resolved(address: Address, path: str, **params: str) -> RemoteTable:
    """Return a table as its source resolves it."""
    return CarawaySource().resolve(request(address, path, **params))


class ServedRuntime:
    """A runtime whose datasets are the tables of a DuckDB, as they are after each statement."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Serving) -> None:
        self._loop, self._server = loop, server
        self._database = duckdb.connect()
        self._versions = itertools.count(2)
        self.address = server.address

    def run(self, *statements: str) -> None:
        for each in statements:
            self._database.execute(each)
        listed = "SELECT table_schema, table_name FROM information_schema.tables"
        tables = {}
        for schema, name in self._database.execute(listed).fetchall():
            quoted = ".".join('"' + each.replace('"', '""') + '"' for each in (schema, name))
            rows: pa.Table = self._database.execute(f"FROM {quoted}").to_arrow_table()
            tables[f"{schema}.{name}"] = MemoryTable(rows.schema, rows)
        made = self._server.services.dispatch.install(
            snapshot(tables, version=next(self._versions))
        )
        assert asyncio.run_coroutine_threadsafe(made, self._loop).result(60) == {}

    def close(self) -> None:
        self._database.close()


@contextmanager
def runtime() -> Iterator[ServedRuntime]:
    """Serve datasets over Flight SQL for the keys of the tests, until the block ends."""
    started: list[tuple[asyncio.AbstractEventLoop, Serving, asyncio.Event]] = []
    is_up = threading.Event()

    async def hold() -> None:
        async with serving({}, keys=KEYS) as server:
            closing = asyncio.Event()
            started.append((asyncio.get_running_loop(), server, closing))
            is_up.set()
            await closing.wait()

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    assert is_up.wait(60)
    loop, server, closing = started[0]
    made = ServedRuntime(loop, server)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(closing.set)
        thread.join(60)
        made.close()
