"""The length of a statement is limited on every protocol."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core.errors import InvalidQueryError
from caraway_core.settings import Address
from caraway_gateway.flight import FlightEndpoint
from caraway_scheduler.queries import texts
from tests.gateway.flight.serving import client
from tests.kit.runtime import running

LIMIT = 2048
MANIFEST = f"runtime: {{query: {{max_sql_size: {LIMIT}B}}}}\n"


@pytest.mark.parametrize("text", ["a" * 10, "é" * 5, "\ud800" + "a" * 7, " a "])
def test_texts_up_to_the_limit_are_taken(text: str) -> None:
    texts.check(text, 10)


@pytest.mark.parametrize("text", ["a" * 11, "é" * 6, "\U0001f600" * 3, "a" * 10_000_000])
def test_longer_texts_are_refused_with_the_setting(text: str) -> None:
    with pytest.raises(
        InvalidQueryError, match=r"more than 10 bytes.*runtime\.query\.max_sql_size"
    ):
        texts.check(text, 10)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_empty_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="the statement is empty"):
        texts.check(text)


def padded(size: int) -> str:
    return "SELECT 1 AS a --" + "x" * (size - 16)


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except pa.ArrowInvalid as exc:
        assert "max_sql_size" in str(exc)
        return True
    return False


async def test_every_protocol_has_the_limit(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        endpoint = FlightEndpoint(
            runtime.services, asyncio.get_running_loop(), Address("127.0.0.1", 0)
        )
        address = endpoint.start()

        def refusals(text: str) -> list[bool]:
            command = flight.FlightDescriptor.for_command(text.encode())
            with client(address) as connected:
                calls: list[Callable[[], object]] = [
                    lambda: connected.do_get(flight.Ticket(text.encode())).read_all(),
                    lambda: connected.get_flight_info(command),
                    lambda: connected.get_schema(command),
                ]
                return [is_refused(call) for call in calls]

        try:
            assert (await runtime.sql(padded(LIMIT))).status_code == 200
            refused = await runtime.sql(padded(LIMIT + 1))
            assert (refused.status_code, "max_sql_size" in refused.text) == (400, True)
            job = await runtime.api.post("/v1/queries", json={"sql": padded(LIMIT + 1)})
            assert (job.status_code, "max_sql_size" in job.text) == (400, True)
            assert await asyncio.to_thread(refusals, padded(LIMIT)) == [False] * 3
            assert await asyncio.to_thread(refusals, padded(LIMIT + 1)) == [True] * 3
        finally:
            await endpoint.stop(5)
