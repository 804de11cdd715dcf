"""Finished queries of a whole runtime, submitted over HTTP and read in parts over Flight."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_gateway.flight import FlightEndpoint
from tests.gateway.flight.part_descriptions import described
from tests.gateway.flight.serving import ANY_PORT, Serving, bearer
from tests.kit.runtime import Running, running

ROWS = 20_000
SQL = f"SELECT value AS id, repeat('x', 1000) AS filler FROM generate_series(1, {ROWS})"
"""About 20 MB, which are several chunks."""
MANIFEST = "runtime:\n  auth:\n    api_key: {enabled: true, keys: [mine, others]}\n"


@asynccontextmanager
async def both(folder: Path, manifest: str) -> AsyncIterator[tuple[Running, Serving]]:
    """Serve a manifest over HTTP and over Flight."""
    async with running(folder, manifest) as runtime:
        endpoint = FlightEndpoint(runtime.services, asyncio.get_running_loop(), ANY_PORT, None)
        try:
            yield runtime, Serving(endpoint, runtime.services, endpoint.start())
        finally:
            await endpoint.stop(5)


async def ended(runtime: Running, sql: str, expected: str, **headers: str) -> str:
    """Submit a query over HTTP and wait until it ends."""
    made = await runtime.api.post("/v1/queries", json={"sql": sql}, headers=headers)
    assert made.status_code == 202, made.text
    job_id = str(made.json()["query_id"])
    path, status = f"/v1/queries/{job_id}?wait=60", "PENDING"
    while status in ("PENDING", "RUNNING"):
        found = await runtime.api.get(path, headers=headers)
        status = found.json()["status"]
    assert status == expected, found.text
    return job_id


async def test_parts_over_flight_are_the_chunks_over_http(tmp_path: Path) -> None:
    async with both(tmp_path, "") as (runtime, server):
        job_id = await ended(runtime, SQL, "SUCCEEDED")
        info = await server.ask(lambda c: c.get_flight_info(described(job_id)))
        tickets = [each.ticket for each in reversed(info.endpoints)]
        read = await server.ask(lambda c: [c.do_get(each).read_all() for each in tickets])
        chunks = [
            await runtime.api.get(
                f"/v1/queries/{job_id}/results/chunks/{number}",
                headers={"accept": "application/vnd.apache.arrow.stream"},
            )
            for number in range(len(info.endpoints))
        ]
    assert len(info.endpoints) > 1 and info.total_records == ROWS
    assert [pa.ipc.open_stream(each.content).read_all() for each in chunks] == read[::-1]
    ids = pa.concat_tables(read)["id"].to_pylist()
    assert sorted(ids) == list(range(1, ROWS + 1))


async def test_parts_are_read_by_the_principal_that_asked_over_http(tmp_path: Path) -> None:
    async with both(tmp_path, MANIFEST) as (runtime, server):
        job_id = await ended(runtime, "SELECT 1 AS a", "SUCCEEDED", **{"x-api-key": "mine"})
        info = await server.ask(lambda c: c.get_flight_info(described(job_id), bearer("mine")))
        (endpoint,) = info.endpoints
        mine = await server.ask(lambda c: c.do_get(endpoint.ticket, bearer("mine")).read_all())
        assert mine.to_pylist() == [{"a": 1}]
        with pytest.raises(pa.ArrowKeyError):
            await server.ask(lambda c: c.do_get(endpoint.ticket, bearer("others")).read_all())
        with pytest.raises(flight.FlightUnauthenticatedError):
            await server.ask(lambda c: c.get_flight_info(described(job_id)))


async def test_parts_of_a_failed_query_are_its_error(tmp_path: Path) -> None:
    async with both(tmp_path, "") as (runtime, server):
        job_id = await ended(runtime, "SELECT 1 / 0 AS a", "FAILED")
        with pytest.raises(flight.FlightError, match=r"(?i)divi"):
            await server.ask(lambda c: c.get_flight_info(described(job_id)))
