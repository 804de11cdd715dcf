"""Clients that break off, stop reading or come back with wrong tickets."""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.ids import ExecutorId, PrincipalId, QueryId
from caraway_core.security.tickets import PartTicket
from caraway_core.settings import Address
from caraway_core.tables import TableSpec
from caraway_executor.answers import offers
from caraway_executor.resources import usage
from tests.gateway.flight.parallel import TOKEN, parallel, settled
from tests.gateway.flight.serving import ANY_PORT, client, command, serving
from tests.kit.tables import parquet

LONG = "SELECT value AS n, repeat('x', 900) AS s FROM generate_series(1, 20000000)"
BROKEN = 1000
_GROWTH_MB = 200
"""Allocators keep up to 130 MB more or less from one look to the next, without a trend."""
_GROWTH_AT_EXECUTORS_MB = 150
"""Half a megabyte for each stream; one that is kept holds 12."""


def standing() -> tuple[int, int, float]:
    """Return the threads, open files and megabytes of this process.

    Pages that allocators offered to the system do not count.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    threads = len(os.listdir("/proc/self/task"))
    private_mb = usage.kept_bytes(os.getpid()) / 1e6
    return threads, len(os.listdir("/proc/self/fd")), private_mb


def broken(address: Address, sql: str) -> None:
    """Begin to read, and leave after the first rows."""
    with client(address) as connected:
        info = connected.get_flight_info(command(sql))
        reader = connected.do_get(info.endpoints[0].ticket)
        reader.read_chunk()
        reader.cancel()


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_a_thousand_broken_streams_leave_nothing() -> None:
    async with serving() as server:

        async def break_off(count: int) -> tuple[int, int, float]:
            for _ in range(count):
                await asyncio.to_thread(broken, server.address, LONG)
            await server.idle()
            return standing()

        before = await break_off(100)
        after = await break_off(BROKEN)
        assert after[0] <= before[0] + 8, (before, after)
        assert after[1] <= before[1] + 8, (before, after)
        assert after[2] <= before[2] + _GROWTH_MB, (before, after)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_broken_streams_leave_nothing_at_executors(tmp_path: Path) -> None:
    rows = pa.table({"v": range(100_000)})
    tables: dict[str, TableSpec | str] = {"facts": parquet(tmp_path / "facts", rows, 8)}
    async with parallel(tmp_path, tables) as cluster:

        async def break_off(count: int) -> tuple[int, int, float]:
            for _ in range(count):
                info = await cluster.info("SELECT v, repeat('x', 500) AS s FROM facts")
                uri = info.endpoints[0].locations[0].uri.decode()
                address = Address.parse(uri.partition("://")[2])

                def leave(ticket: flight.Ticket, address: Address = address) -> None:
                    with client(address) as connected:
                        reader = connected.do_get(ticket)
                        reader.read_chunk()
                        reader.cancel()

                await asyncio.to_thread(leave, info.endpoints[0].ticket)
                await cluster.serving.idle()
            await settled(lambda: cluster.offered == 0, "no offer is left")
            return standing()

        # The allocators of two engines reach their size after about 150 streams.
        before = await break_off(150)
        after = await break_off(300)
        assert after[0] <= before[0] + 8, (before, after)
        assert after[1] <= before[1] + 8, (before, after)
        assert after[2] <= before[2] + _GROWTH_AT_EXECUTORS_MB, (before, after)


async def test_a_client_that_stops_reading_ends_with_the_time_limit() -> None:
    async with serving(timeout_s=0.5) as server:

        def stop_reading(until_ended: Callable[[], None]) -> None:
            with client(server.address) as connected:
                info = connected.get_flight_info(command(LONG))
                reader = connected.do_get(info.endpoints[0].ticket)
                reader.read_chunk()
                until_ended()
                with pytest.raises(flight.FlightTimedOutError, match=r"runtime\.query\.timeout"):
                    reader.read_all()

        loop = asyncio.get_running_loop()

        def until_ended() -> None:
            asyncio.run_coroutine_threadsafe(server.idle(), loop).result(60)

        await asyncio.to_thread(stop_reading, until_ended)


async def test_a_client_that_stops_reading_at_an_executor_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "STALLED_S", 2.0)
    rows = pa.table({"v": range(100_000)})
    tables: dict[str, TableSpec | str] = {"facts": parquet(tmp_path / "facts", rows, 8)}
    async with parallel(tmp_path, tables) as cluster:
        info = await cluster.info("SELECT v, repeat('x', 2000) AS s FROM facts")
        uri = info.endpoints[0].locations[0].uri.decode()
        loop = asyncio.get_running_loop()

        def stop_reading() -> None:
            with client(Address.parse(uri.partition("://")[2])) as connected:
                reader = connected.do_get(info.endpoints[0].ticket)
                reader.read_chunk()
                asyncio.run_coroutine_threadsafe(cluster.serving.idle(), loop).result(60)
                with pytest.raises(flight.FlightUnavailableError):
                    reader.read_all()

        await asyncio.to_thread(stop_reading)
        await settled(lambda: cluster.offered == 0, "no offer is left")


@pytest.mark.parametrize("ticket", [b"", b"\0", b"\0part:x", b"\0queries/", b"\xff\xfe", b"\n\x00"])
async def test_garbage_tickets_are_refused(ticket: bytes) -> None:
    async with serving() as server:
        with pytest.raises((pa.ArrowInvalid, pa.ArrowKeyError)):
            await server.ask(lambda to: to.do_get(flight.Ticket(ticket)).read_all())


async def test_a_process_without_a_cluster_knows_no_part() -> None:
    part = PartTicket(QueryId("q"), "o", ExecutorId("e"), PrincipalId("public"), 1 << 40)
    async with serving() as server:
        with pytest.raises(pa.ArrowKeyError, match="no cluster here"):
            await server.ask(lambda to: to.do_get(flight.Ticket(part.sealed(TOKEN))).read_all())


async def test_a_server_that_ends_tells_its_readers() -> None:
    async with serving(address=ANY_PORT) as server:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def read() -> None:
            with client(server.address) as connected:
                info = connected.get_flight_info(command(LONG))
                reader = connected.do_get(info.endpoints[0].ticket)
                reader.read_chunk()
                loop.call_soon_threadsafe(begun.set)
                with pytest.raises(flight.FlightUnavailableError):
                    reader.read_all()

        reading = asyncio.create_task(asyncio.to_thread(read))
        await begun.wait()
        await server.endpoint.stop(0.1)
        await reading
        await server.idle()
