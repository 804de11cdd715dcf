"""Statements over Flight while datasets load, as over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_gateway.flight import FlightEndpoint
from caraway_gateway.services import Services
from tests.gateway.flight.serving import ANY_PORT, Serving, command, query
from tests.kit.runtime import Running, running
from tests.scheduler.catalog.missing_sources import (
    KEPT,
    MANIFEST,
    WAIT_S,
    held,
    loaded,
    not_waiting,
)


@asynccontextmanager
async def endpoint_of(services: Services) -> AsyncIterator[Serving]:
    endpoint = FlightEndpoint(services, asyncio.get_running_loop(), ANY_PORT, None)
    try:
        yield Serving(endpoint, services, endpoint.start())
    finally:
        await endpoint.stop(5)


@asynccontextmanager
async def starting(folder: Path, manifest: str) -> AsyncIterator[tuple[Running, Serving]]:
    """Serve a manifest whose datasets are not waited for."""
    async with (
        asyncio.timeout(WAIT_S),
        running(folder, manifest, before=not_waiting) as runtime,
        endpoint_of(runtime.services) as server,
    ):
        yield runtime, server


async def refused(server: Serving, sql: str) -> flight.FlightUnavailableError:
    with pytest.raises(flight.FlightUnavailableError, match="still loading") as caught:
        await server.ask(query(sql))
    return caught.value


async def test_a_dataset_that_loads_is_unavailable_and_an_unknown_table_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.csv").write_text("a\n1\n")
    with held(monkeypatch) as may_go:
        async with starting(tmp_path, MANIFEST) as (runtime, server):
            for table in ("slow", "slower"):
                exc = await refused(server, f"SELECT a FROM {table}")
                assert "try again" in str(exc)
                assert "Traceback" not in str(exc)
            ticket = flight.Ticket(b"SELECT a FROM slow")
            with pytest.raises(flight.FlightUnavailableError, match="still loading"):
                await server.ask(lambda client: client.do_get(ticket).read_all())
            # pyarrow's GetSchema drops the status of what a server raises: only its text arrives.
            with pytest.raises(pa.ArrowException, match="still loading"):
                await server.ask(lambda client: client.get_schema(command(b"SELECT a FROM slow")))
            with pytest.raises(ValueError, match="nowhere"):
                await server.ask(query("SELECT a FROM nowhere"))
            may_go.set()
            await loaded(runtime, "SELECT a FROM slower")
            rows = await server.ask(query("SELECT a FROM slower"))
            assert rows.to_pylist() == [{"a": 1}]


async def test_a_stored_version_answers_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.csv").write_text("a\n1\n")
    async with running(tmp_path, KEPT) as runtime:
        await loaded(runtime, "SELECT a FROM slow")
    with held(monkeypatch):
        async with starting(tmp_path, KEPT) as (again, server):
            await loaded(again, "SELECT a FROM slow")
            rows = await server.ask(query("SELECT a FROM slow"))
            assert rows.to_pylist() == [{"a": 1}]
