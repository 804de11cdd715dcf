"""Ordered answers of several endpoints, read ahead and handed over in order."""

import threading
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway import ApiError, BrokenResponseError, Client
from caraway.flight.endpoints import MOST_AHEAD
from tests.client.flight_server import FakeFlight, flight_running, numbers
from tests.client.runtime import WAIT_S, Pauses, pausing


@pytest.fixture
def served() -> Iterator[FakeFlight]:
    with flight_running() as server:
        server.is_ordered = True
        yield server


@pytest.fixture
def client(served: FakeFlight) -> Iterator[Client]:
    with pausing(Pauses(), "", http_url="", flight_url=served.url, max_retries=0) as client:
        yield client


def threads_of_clients() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("caraway-flight")]


def test_endpoints_are_read_at_once_and_their_rows_come_in_order(
    client: Client, served: FakeFlight
) -> None:
    # No endpoint begins before all of them are requested.
    together = threading.Barrier(MOST_AHEAD)

    def part(number: int) -> Iterator[pa.RecordBatch]:
        together.wait(WAIT_S)
        yield numbers(number * 10, 5)
        yield numbers(number * 10 + 5, 5)

    parts = range(MOST_AHEAD * 2)
    served.endpoints = {f"part {each}": partial(part, each) for each in parts}
    served.total_records = 10 * len(parts)

    assert client.sql("SELECT n")["n"].to_pylist() == list(range(10 * len(parts)))
    assert threads_of_clients() == []


def test_endpoints_may_be_empty(client: Client, served: FakeFlight) -> None:
    served.endpoints = {
        "a": lambda: iter(()),
        "b": lambda: iter([numbers(1, 2)]),
        "c": lambda: iter(()),
    }
    assert client.sql("SELECT n")["n"].to_pylist() == [1, 2]


def test_endpoint_that_fails_fails_the_statement(client: Client, served: FakeFlight) -> None:
    def lost() -> Iterator[pa.RecordBatch]:
        yield numbers(0, 1)
        raise flight.FlightInternalError("the executor is gone")

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield numbers(0, 1000)

    served.endpoints = {"a": lambda: iter([numbers(0, 1)]), "b": lost, "c": endless, "d": endless}

    with client.reader("SELECT n") as reader, pytest.raises(ApiError, match="executor is gone"):
        for _ in reader:
            pass

    assert served.cancelled.wait(WAIT_S)
    assert threads_of_clients() == []


def test_fewer_rows_than_announced_are_an_error(client: Client, served: FakeFlight) -> None:
    served.endpoints = {"a": lambda: iter([numbers(0, 1)]), "b": lambda: iter(())}
    served.total_records = 2
    with pytest.raises(BrokenResponseError, match="announced 2 rows and sent 1"):
        client.sql("SELECT n")


def test_leaving_the_reader_ends_all_reads(client: Client, served: FakeFlight) -> None:
    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield numbers(0, 1000)

    served.endpoints = {f"part {each}": endless for each in range(6)}
    with client.reader("SELECT n") as reader:
        assert next(iter(reader)).num_rows == 1000
    assert threads_of_clients() == []
    assert len([name for name, _ in served.asked if name == "get"]) <= MOST_AHEAD
