"""Messages that gRPC itself compresses have the limits of others: see decision 0146."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyarrow import flight

from tests.gateway.flight.serving import KEYS, Serving, serving

_T = TypeVar("_T")
_MIB = 1024 * 1024
_LARGE = b" " * (8 * _MIB)
"""Has 8 KiB once it is compressed."""
_COMPRESSED = [("grpc.enable_http_proxy", 0), ("grpc.default_compression_algorithm", 2)]
"""A client of gRPC with these compresses its messages with gzip."""
_CALLS: dict[str, Callable[[Any], object]] = {
    "DoGet": lambda client: client.do_get(flight.Ticket(_LARGE)).read_all(),
    "DoAction": lambda client: list(client.do_action(flight.Action("any", _LARGE))),
    "GetFlightInfo": lambda client: client.get_flight_info(
        flight.FlightDescriptor.for_command(_LARGE)
    ),
}


async def ask_compressed(server: Serving, call: Callable[[Any], _T]) -> _T:
    def blocking() -> _T:
        location = f"grpc+tcp://{server.address}"
        with flight.connect(location, generic_options=_COMPRESSED) as connected:
            return call(connected)

    return await asyncio.to_thread(blocking)


@pytest.mark.parametrize("call", _CALLS)
async def test_what_a_message_becomes_is_limited(call: str) -> None:
    async with serving(max_body_bytes=_MIB) as server:
        with pytest.raises(pa.ArrowInvalid, match="larger than 1048576 bytes"):
            await ask_compressed(server, _CALLS[call])
        ticket = flight.Ticket(b"SELECT 1 AS n")
        rows = await ask_compressed(server, lambda client: client.do_get(ticket).read_all())
    assert rows.to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("call", _CALLS)
async def test_it_needs_a_key_like_others(call: str) -> None:
    async with serving(keys=KEYS) as server:
        with pytest.raises(flight.FlightUnauthenticatedError):
            await ask_compressed(server, _CALLS[call])
