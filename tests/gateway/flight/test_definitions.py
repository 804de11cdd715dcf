"""Tables of source catalogs that statements over Flight create and drop."""

import asyncio
from pathlib import Path

from caraway_gateway.flight import FlightEndpoint
from tests.gateway.flight.serving import ANY_PORT, Serving, query
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit import sqlite_files
from tests.kit.runtime import running

MANIFEST = """
catalogs:
  - {from: sqlite, name: sq, access: read_write_create, params: {sqlite_file: s.db}}
"""


async def test_a_table_is_created_and_dropped(tmp_path: Path) -> None:
    sqlite_files.run(tmp_path / "s.db", "CREATE TABLE t (id INTEGER)")
    async with running(tmp_path, MANIFEST) as runtime:
        endpoint = FlightEndpoint(runtime.services, asyncio.get_running_loop(), ANY_PORT, None)
        server = Serving(endpoint, runtime.services, endpoint.start())
        try:
            made = await server.ask(query("CREATE TABLE sq.main.x AS SELECT 7 AS a"))
            assert made.to_pylist() == [{"count": 1}]
            found = await drive(server, fetched("SELECT * FROM sq.main.x"))
            assert found.to_pylist() == [{"a": 7}]
            dropped = await drive(server, fetched("DROP TABLE sq.main.x"))
            assert dropped.to_pylist() == [{"count": 0}]
            again = await drive(server, fetched("CREATE TABLE sq.main.x (b TEXT NOT NULL)"))
            assert again.to_pylist() == [{"count": 0}]
            found = await drive(server, fetched("SELECT * FROM sq.main.x"))
            assert (found.num_rows, found.schema.names) == (0, ["b"])
        finally:
            await endpoint.stop(5)
