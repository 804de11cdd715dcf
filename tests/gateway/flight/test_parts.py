"""Answers of asynchronous queries in parts, through real clients."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from tests.gateway.flight.action_services import ROWS, SCHEMA, answer, service_of
from tests.gateway.flight.part_descriptions import described
from tests.gateway.flight.serving import KEYS, bearer


async def test_parts_are_read_in_any_order_and_are_the_answer() -> None:
    chunks = [ROWS, ROWS.slice(1), ROWS.slice(0, 1)]
    async with service_of() as (server, service):
        await answer(server, "SubmitAsyncQuery", {"sql": "SELECT 1"})
        job = service.last
        service.succeed(job, SCHEMA, *chunks)

        def ask(connected: Any) -> tuple[flight.FlightInfo, list[pa.Table]]:
            info = connected.get_flight_info(described(job.job_id))
            tickets = [each.ticket for each in info.endpoints]
            with ThreadPoolExecutor(3) as pool:
                read = list(pool.map(lambda t: connected.do_get(t).read_all(), tickets[::-1]))
            return info, read[::-1]

        info, read = await server.ask(ask)
        assert (info.total_records, len(info.endpoints)) == (4, 3)
        assert info.schema == SCHEMA
        assert all(not each.locations for each in info.endpoints)
        assert read == [pa.Table.from_batches([each]) for each in chunks]
        schema = await server.ask(lambda c: c.get_schema(described(job.job_id)).schema)
        assert schema == SCHEMA


async def test_parts_of_others_are_refused() -> None:
    async with service_of(KEYS) as (server, service):
        await answer(server, "SubmitAsyncQuery", {"sql": "SELECT 1"}, "writer")
        job = service.last
        service.succeed(job, SCHEMA, ROWS)
        info = await server.ask(
            lambda c: c.get_flight_info(described(job.job_id), bearer("writer"))
        )
        (endpoint,) = info.endpoints
        mine = await server.ask(lambda c: c.do_get(endpoint.ticket, bearer("writer")).read_all())
        assert mine == pa.Table.from_batches([ROWS])
        with pytest.raises(pa.ArrowKeyError, match="quer"):
            await server.ask(lambda c: c.get_flight_info(described(job.job_id), bearer("reader")))
        with pytest.raises(pa.ArrowKeyError):
            await server.ask(lambda c: c.do_get(endpoint.ticket, bearer("reader")).read_all())


async def test_part_that_is_not_there_is_not_found() -> None:
    async with service_of() as (server, service):
        await answer(server, "SubmitAsyncQuery", {"sql": "SELECT 1"})
        job = service.last
        with pytest.raises(flight.FlightError, match="PENDING"):
            await server.ask(lambda c: c.get_flight_info(described(job.job_id)))
        service.succeed(job, SCHEMA, ROWS)
        ticket = flight.Ticket(f"\0queries/{job.job_id}/1".encode())
        with pytest.raises(pa.ArrowKeyError, match="has no chunk 1"):
            await server.ask(lambda c: c.do_get(ticket).read_all())


@pytest.mark.parametrize("path", [("tables", "t"), ("queries",), ("queries", "a", "b")])
async def test_other_paths_are_refused(path: tuple[str, ...]) -> None:
    async with service_of() as (server, _):
        with pytest.raises(pa.ArrowInvalid, match="with a path"):
            await server.ask(lambda c: c.get_flight_info(flight.FlightDescriptor.for_path(*path)))
