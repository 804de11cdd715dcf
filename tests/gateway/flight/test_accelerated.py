"""Rows that are inserted over Flight into an accelerated dataset."""

import asyncio
from pathlib import Path

from caraway_gateway.flight import FlightEndpoint
from tests.gateway.api.accelerating import at_version
from tests.gateway.api.change_manifests import TAKING
from tests.gateway.flight.serving import ANY_PORT, Serving, query
from tests.kit.runtime import running


async def test_what_is_inserted_is_read_by_the_next_statement(tmp_path: Path) -> None:
    async with running(tmp_path, TAKING) as runtime:
        await at_version(runtime, 1)
        loop = asyncio.get_running_loop()
        endpoint = FlightEndpoint(runtime.services, loop, ANY_PORT, None)
        server = Serving(endpoint, runtime.services, endpoint.start())
        try:
            for number in range(1, 4):
                made = await server.ask(query(f"INSERT INTO orders VALUES ({number}, 'v')"))
                assert made.to_pylist() == [{"count": 1}]
                found = await server.ask(query("SELECT count(*) AS n FROM orders"))
                assert found.to_pylist() == [{"n": number}]
                behind = await runtime.own("SELECT count(*) AS n FROM caraway_source.orders")
                assert behind == [{"n": number}]
        finally:
            await endpoint.stop(5)
