"""A Flight SQL driver of a server, and messages of the protocol sent by hand."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from adbc_driver_flightsql import DatabaseOptions, dbapi
from pyarrow import flight

from caraway_gateway.flight.sql import messages
from tests.gateway.flight.serving import Serving, command

T = TypeVar("T")


@contextmanager
def connected(server: Serving, key: str | None = None) -> Iterator[Any]:
    settings = {}
    if key is not None:
        settings[DatabaseOptions.AUTHORIZATION_HEADER.value] = f"Bearer {key}"
    with dbapi.connect(f"grpc://{server.address}", settings, autocommit=True) as connection:
        yield connection


async def drive(server: Serving, use: Callable[[Any], T], key: str | None = None) -> T:
    """Use a DB-API connection in a thread of its own: the driver blocks."""

    def blocking() -> T:
        with connected(server, key) as connection:
            return use(connection)

    return await asyncio.to_thread(blocking)


def fetched(sql: str, *values: Any) -> Callable[[Any], pa.Table]:
    """Run one statement through a cursor."""

    def use(connection: Any) -> pa.Table:
        with connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return cursor.fetch_arrow_table()

    return use


def read(message: Any, options: Any = None) -> Callable[[Any], pa.Table]:
    """Ask a message for its rows, by the two calls that drivers make."""

    def ask(connected: Any) -> pa.Table:
        descriptor = command(messages.packed(message))
        info = connected.get_flight_info(descriptor, options)
        schema = connected.get_schema(descriptor, options).schema
        rows = connected.do_get(info.endpoints[0].ticket, options).read_all()
        assert rows.schema == info.schema == schema
        return rows

    return ask


def act(name: str, message: Any, options: Any = None) -> Callable[[Any], list[bytes]]:
    """Send an action whose body is a message of Flight SQL."""
    return act_raw(name, messages.packed(message), options)


def act_raw(name: str, body: bytes, options: Any = None) -> Callable[[Any], list[bytes]]:
    def ask(connected: Any) -> list[bytes]:
        results = connected.do_action(flight.Action(name, body), options)
        return [each.body.to_pybytes() for each in results]

    return ask


def put(
    descriptor: flight.FlightDescriptor, rows: pa.Table, options: Any = None
) -> Callable[[Any], list[bytes]]:
    """Upload rows, and return what the server says of them."""

    def ask(connected: Any) -> list[bytes]:
        writer, reader = connected.do_put(descriptor, rows.schema, options)
        with writer:
            writer.write_table(rows)
            writer.done_writing()
            said = []
            while (buffer := reader.read()) is not None:
                said.append(buffer.to_pybytes())
            return said

    return ask
