"""Statements through a real client."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_scheduler.catalog.states import DatasetState
from caraway_scheduler.queries.cache import ResultsCache
from tests.gateway.flight.serving import (
    KEYS,
    Serving,
    bearer,
    command,
    headers,
    query,
    serving,
)
from tests.kit.engine import memory

MILLION = "SELECT value FROM generate_series(1, 1000000)"
ENDLESS = "SELECT count(*) FROM generate_series(1, 4000000000) a"


async def test_query_returns_its_rows() -> None:
    async with serving({"t": memory(a=[1, 2], s=["x", None])}) as server:
        rows = await server.ask(query("SELECT a, s FROM t ORDER BY a"))
    assert rows.to_pylist() == [{"a": 1, "s": "x"}, {"a": 2, "s": None}]


async def test_ticket_may_be_plain_sql() -> None:
    async with serving() as server:
        rows = await server.ask(lambda c: c.do_get(flight.Ticket(b"SELECT 1 AS one")).read_all())
    assert rows.to_pylist() == [{"one": 1}]


async def test_ticket_carries_the_statement_and_reads_more_than_once() -> None:
    def twice(connected: Any) -> list[pa.Table]:
        ticket = connected.get_flight_info(command("SELECT 1 AS one -- first")).endpoints[0].ticket
        assert ticket.ticket.startswith(b"SELECT 1 AS one -- first\n--")
        return [connected.do_get(ticket).read_all() for _ in range(2)]

    async with serving() as server:
        first, second = await server.ask(twice)
    assert first.to_pylist() == second.to_pylist() == [{"one": 1}]


async def test_statement_runs_once_for_both_calls() -> None:
    async with serving() as server:
        await server.ask(query("SELECT 1"))
        await server.ask(query(MILLION))
        assert server.services.tallies.query_executions == {("flight",): 2}
        assert server.services.tallies.query_returned_rows == {("flight",): 1_000_001}
        assert server.services.tallies.query_returned_bytes[("flight",)] > 8_000_000


async def test_info_tells_the_rows_that_are_known() -> None:
    async with serving() as server:
        info = await server.ask(lambda c: c.get_flight_info(command("VALUES (1), (2)")))
    assert info.total_records == 2
    assert info.endpoints[0].locations == []


async def test_empty_result_has_its_schema() -> None:
    async with serving({"t": memory(a=[1], s=["x"])}) as server:
        rows = await server.ask(query("SELECT a, s FROM t WHERE a > 5"))
    assert rows.num_rows == 0
    assert rows.schema.names == ["a", "s"]


@pytest.mark.parametrize("sql", ["SHOW TABLES", "EXPLAIN SELECT 1", "DESCRIBE t"])
async def test_statements_that_are_not_queries_answer_too(sql: str) -> None:
    async with serving({"t": memory(a=[1])}) as server:
        assert (await server.ask(query(sql))).num_rows > 0


async def test_strings_are_plain_and_dictionaries_survive() -> None:
    sql = "SELECT arrow_cast(s, 'Utf8View') AS v, arrow_cast(s, 'Dictionary(Int8, Utf8)') AS d "
    sql += "FROM (VALUES ('x'), ('y'), ('x')) AS t(s)"
    async with serving() as server:
        rows = await server.ask(query(sql))
    assert rows.schema.field("v").type == pa.string()
    assert rows.schema.field("d").type == pa.dictionary(pa.int8(), pa.string())
    assert rows.to_pydict() == {"v": ["x", "y", "x"], "d": ["x", "y", "x"]}


async def test_schema_is_told_without_reading_rows() -> None:
    async with serving() as server:
        result = await server.ask(lambda c: c.get_schema(command(MILLION)))
        await server.idle()
    assert result.schema == pa.schema([pa.field("value", pa.int64(), nullable=False)])


async def test_large_result_arrives_whole() -> None:
    async with serving() as server:
        rows = await server.ask(query(MILLION))
    assert rows.num_rows == 1_000_000
    assert rows.column("value")[-1].as_py() == 1_000_000


async def test_reader_that_goes_away_ends_the_statement() -> None:
    def read_some(connected: Any) -> int:
        reader = connected.do_get(
            flight.Ticket(b"SELECT value FROM generate_series(1, 1000000000)")
        )
        rows = sum(reader.read_chunk().data.num_rows for _ in range(3))
        reader.cancel()
        return int(rows)

    async with serving() as server:
        assert await server.ask(read_some) > 0
        await server.idle()
        (error,) = server.services.history.table(None).column("error_message").to_pylist()
        assert error == "the client went away"
        # Rows that were not read were not made either.
        assert server.services.tallies.query_returned_rows[("flight",)] < 10_000_000


async def test_client_that_gives_up_waiting_ends_the_statement() -> None:
    impatient = flight.FlightCallOptions(timeout=0.5)
    async with serving() as server:
        with pytest.raises(flight.FlightTimedOutError):
            await server.ask(lambda c: c.do_get(flight.Ticket(ENDLESS), impatient).read_all())
        await server.idle()


async def test_abandoned_info_keeps_no_statement() -> None:
    async with serving(max_running=2) as server:
        for _ in range(3):
            await server.ask(lambda c: c.get_flight_info(command(MILLION)))
        # Half of the places may be held by answers that wait; the older ones made room.
        assert len(server.services.queries.active) == 1
        assert server.services.queries.admission.running == 1


async def test_ticket_whose_answer_is_gone_runs_anew() -> None:
    def first_of_three(connected: Any) -> pa.Table:
        infos = [connected.get_flight_info(command(MILLION)) for _ in range(3)]
        return connected.do_get(infos[0].endpoints[0].ticket).read_all()

    async with serving(max_running=2) as server:
        assert (await server.ask(first_of_three)).num_rows == 1_000_000


async def test_cancelled_query_ends_the_stream() -> None:
    reading = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read(connected: Any) -> None:
        reader = connected.do_get(
            flight.Ticket(b"SELECT value FROM generate_series(1, 1000000000)")
        )
        reader.read_chunk()
        loop.call_soon_threadsafe(reading.set)
        for _ in reader:
            pass

    async with serving() as server:
        asked = asyncio.create_task(server.ask(read))
        async with asyncio.timeout(60):
            await reading.wait()
        server.services.queries.active.stop_all("cancelled")
        with pytest.raises(flight.FlightCancelledError, match="the query was cancelled"):
            await asked


async def test_statement_that_takes_too_long_times_out() -> None:
    async with serving(timeout_s=0.2) as server:
        with pytest.raises(flight.FlightTimedOutError, match=r"did not finish within 0\.2 s"):
            await server.ask(query(ENDLESS))


async def test_cached_answer_is_used_unless_the_caller_bypasses_it() -> None:
    cache = ResultsCache(CacheSettings(ttl_s=60), time.monotonic)
    async with serving({"t": memory(a=[1])}, cache=cache) as server:
        tables = [
            await server.ask(query("SELECT a FROM t", options))
            for options in (None, None, headers(cache_control="no-cache"))
        ]
    assert [table.to_pylist() for table in tables] == [[{"a": 1}]] * 3
    assert (cache.requests, cache.hits) == (2, 1)


async def test_asking_about_a_write_does_not_write() -> None:
    tables = {"t": memory(a=[1])}
    sql = "/* more */ INSERT INTO t VALUES (2), (3)"
    async with serving(tables, writable=("t",)) as server:
        info = await server.ask(lambda c: c.get_flight_info(command(sql)))
        await server.ask(lambda c: c.get_schema(command(sql)))
        assert (await server.ask(query("SELECT a FROM t"))).num_rows == 1
        assert (await server.ask(query(sql))).to_pylist() == [{"count": 2}]
        assert (await server.ask(query("SELECT a FROM t"))).num_rows == 3
    assert info.schema.names == ["count"]


async def test_principals_do_not_get_each_others_answers() -> None:
    def steal(connected: Any) -> pa.Table:
        info = connected.get_flight_info(command("SELECT 1 AS one"), bearer("writer"))
        return connected.do_get(info.endpoints[0].ticket, bearer("reader")).read_all()

    async with serving(keys=KEYS) as server:
        assert (await server.ask(steal)).num_rows == 1
        # The statement ran once more, as the other principal.
        assert server.services.tallies.query_executions == {("flight",): 2}


async def test_history_knows_the_client() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    options = headers(
        x_spice_user_agent="js 1.0 (linux)", traceparent=f"00-{trace}-b7ad6b7169203331-01"
    )
    async with serving() as server:
        await server.ask(query("SELECT 1", options))
        tasks = server.services.history.table(None)
    assert tasks.column("trace_id").to_pylist() == [trace]
    (labels,) = tasks.column("labels").to_pylist()
    assert {("user_agent", "js 1.0 (linux)"), ("protocol", "flight")} <= set(labels)


async def test_lists_no_flights_without_datasets() -> None:
    async with serving() as server:
        assert await server.ask(lambda c: list(c.list_flights())) == []


async def test_flights_are_the_datasets_that_are_loaded() -> None:
    def read_all(connected: Any) -> dict[bytes, list[dict[str, Any]]]:
        return {
            info.descriptor.command: connected.do_get(info.endpoints[0].ticket)
            .read_all()
            .to_pylist()
            for info in connected.list_flights()
        }

    spec = memory(a=[1])
    async with serving({"sales.t": spec}) as server:
        for name, loaded in (("sales.t", spec), ("late", None)):
            dataset = Dataset(name, f"memory:{name}", "memory", name, Path("/nowhere"))
            server.services.catalog.datasets[TableName(name)] = DatasetState(dataset, spec=loaded)
        flights = await server.ask(read_all)
    assert flights == {b'SELECT * FROM "sales"."t"': [{"a": 1}]}


async def many(server: Serving, count: int) -> list[pa.Table]:
    return await asyncio.gather(*(server.ask(query(MILLION)) for _ in range(count)))


async def test_many_clients_at_once() -> None:
    async with serving(max_running=2) as server:
        tables = await many(server, 8)
        await server.idle()
        assert server.services.queries.admission.running == 0
    assert {table.num_rows for table in tables} == {1_000_000}


async def test_calls_that_are_too_many_are_turned_away_behind_the_keys() -> None:
    async with serving(keys=KEYS) as server:
        bucket, tallies = server.services.limits.bucket, server.services.tallies

        def ask(connected: Any) -> object:
            return connected.do_get(flight.Ticket(b"SELECT 1 AS one"), bearer("reader")).read_all()

        def handshake(connected: Any) -> object:
            return connected.authenticate_basic_token("", "reader")

        bucket.refill_at(0.01)
        with pytest.raises(flight.FlightUnauthenticatedError):
            await server.ask(query("SELECT 1"))
        await server.ask(handshake)
        await server.ask(ask)
        with pytest.raises(
            flight.FlightUnavailableError,
            match=r"more than 0\.01 requests a second; the limit api_rps.*try again in \d+ s",
        ):
            await server.ask(ask)
        assert tallies.limited_requests["api_rps",] == 1
        bucket.refill_at(None)
        await server.ask(ask)
