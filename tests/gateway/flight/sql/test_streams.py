"""Rows on their way to a driver, and drivers that go away."""

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.ids import PUBLIC
from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from tests.gateway.flight.relay import Relay, relayed
from tests.gateway.flight.serving import Serving, client, command, query, serving
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit.deadlines import until

BROKEN = 200
ENDLESS = "SELECT value FROM generate_series(1, 1000000000)"
ASKED = command(messages.packed(proto.CommandStatementQuery(query=ENDLESS)))


def begin(connected: Any) -> Any:
    info = connected.get_flight_info(ASKED)
    options = flight.FlightCallOptions(timeout=30)
    reader = connected.do_get(info.endpoints[0].ticket, options)
    assert reader.read_chunk().data.num_rows > 0
    return reader


async def test_statement_is_listed_and_ends_with_its_reader() -> None:
    async with serving() as server:

        def read_some(connected: Any) -> list[tuple[str, str]]:
            reader = begin(connected)
            active = server.services.queries.active.queries_of(PUBLIC)
            reader.cancel()
            return [(each.protocol, each.sql) for each in active]

        assert await server.ask(read_some) == [("flightsql", ENDLESS)]
        await server.idle()


async def test_driver_cancels_its_statement() -> None:
    async with serving() as server:

        def use(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute(ENDLESS)
                reader = cursor.fetch_record_batch()
                reader.read_next_batch()
                cursor.adbc_cancel()
                with pytest.raises((pa.ArrowException, OSError, connection.Error)):
                    while True:
                        reader.read_next_batch()

        await drive(server, use)
        await server.idle()


async def test_broken_streams_leave_nothing() -> None:
    async with serving(max_running=4) as server, relayed(server.address) as relay:
        await server.ask(query("SELECT 1"))
        before = threading.active_count()
        for _ in range(BROKEN):
            await asyncio.to_thread(break_off, relay, server)
        await server.idle()
        # All places are free again, and so are the threads.
        for _ in range(4):
            assert (await server.ask(query("SELECT 1"))).num_rows == 1
        await asyncio.to_thread(until, lambda: threading.active_count() <= before + 4, "no threads")


def break_off(relay: Relay, server: Serving) -> None:
    with client(relay.address) as connected:
        reader = begin(connected)
        relay.cut()
        with pytest.raises(pa.ArrowException):
            while True:
                reader.read_chunk()
    until(lambda: len(server.services.queries.active) == 0, "the statement has ended")


async def test_dictionaries_arrive_as_dictionaries() -> None:
    sql = "SELECT arrow_cast(s, 'Dictionary(Int8, Utf8)') AS d FROM (VALUES ('x'), ('y')) AS t(s)"
    async with serving() as server:
        rows = await drive(server, fetched(sql))
    assert rows.schema.field("d").type == pa.dictionary(pa.int8(), pa.string())
    assert rows.to_pydict() == {"d": ["x", "y"]}
