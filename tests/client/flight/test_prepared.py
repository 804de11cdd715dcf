"""Statements with parameters over Flight, as prepared statements."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway import ApiError, Client
from caraway.flight.prepared import PreparedHandle, PreparedPool
from caraway_core.errors import ParametersError
from tests.client.flight_server import FakeFlight, flight_running, numbers, one_batch
from tests.client.runtime import Answer, FakeRuntime, Pauses, arrow_body, pausing

SQL = "SELECT n FROM t WHERE n > ?"


@pytest.fixture
def served() -> Iterator[FakeFlight]:
    with flight_running() as server:
        yield server


@pytest.fixture
def client(served: FakeFlight, runtime: FakeRuntime) -> Iterator[Client]:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body([{"n": 7}])))
    with pausing(Pauses(), http_url=runtime.endpoint, flight_url=served.url) as client:
        yield client


def endless() -> Iterator[pa.RecordBatch]:
    while True:
        yield numbers(0, 10)


def calls(served: FakeFlight) -> list[str]:
    return [name for name, _ in served.asked]


def test_prepared_statement_is_used_again(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    assert client.sql(SQL, [1]).num_rows == 3
    assert calls(served) == ["prepare", "bind", "info", "get"]
    (handle,) = served.prepared
    assert served.bound == {handle: {"$1": 1}}

    assert client.sql(SQL, [2]).num_rows == 3
    assert calls(served)[4:] == ["bind", "info", "get"]
    assert served.bound == {handle: {"$1": 2}}
    assert runtime.asked == []


def test_statement_with_few_rows_is_asked_for_by_one_call_from_then_on(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    served.metadata = b"caraway-bound-tickets"
    assert client.sql(SQL, [1]).num_rows == 3
    del served.asked[:]
    assert client.sql(SQL, [2]).num_rows == 3
    [(name, text)] = served.asked
    assert name == "get" and text.startswith(SQL) and "2" in text.removeprefix(SQL)
    client.sql("SELECT ?", [1])
    assert calls(served)[1:] == ["prepare", "bind", "info", "get"]
    assert runtime.asked == []


def test_two_readers_never_share_a_statement(client: Client, served: FakeFlight) -> None:
    served.scripts = [endless]
    with client.reader(SQL, [1]), client.reader(SQL, [2]):
        assert sorted(each["$1"] for each in served.bound.values()) == [1, 2]


def test_statement_that_the_server_forgot_is_prepared_again(
    client: Client, served: FakeFlight
) -> None:
    client.sql(SQL, [1])
    served.prepared.clear()
    assert client.sql(SQL, [2]).num_rows == 3
    assert calls(served).count("prepare") == 2


def test_new_statement_that_is_not_found_is_an_error(client: Client, served: FakeFlight) -> None:
    served.refusals = [KeyError("no such thing")]
    with pytest.raises(ApiError) as caught:
        client.sql(SQL, [1])
    assert caught.value.status == 404


def test_statement_whose_reader_left_is_closed_and_not_used_again(
    client: Client, served: FakeFlight
) -> None:
    served.scripts = [endless, one_batch]
    with client.reader(SQL, [1]) as reader:
        next(iter(reader))
    client.sql(SQL, [2])
    assert calls(served)[4:] == ["close", "prepare", "bind", "info", "get"]


def test_closing_the_client_closes_its_statements(client: Client, served: FakeFlight) -> None:
    client.sql(SQL, [1])
    client.sql("SELECT ?", [1])
    client.close()
    assert served.prepared == {}


def test_values_that_cannot_be_sent_are_refused_before_anything_is(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    with pytest.raises(ParametersError, match="parameter '1'"):
        client.sql(SQL, [[1, "x"]])
    assert (served.asked, runtime.asked) == ([], [])


def test_http_takes_over_where_statements_cannot_be_prepared(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    for refusal in (
        flight.FlightUnavailableError("starting"),
        NotImplementedError("no Flight SQL"),
    ):
        served.refusals = [refusal]
        assert client.sql(SQL, [1])["n"].to_pylist() == [7]
    assert len(runtime.asked) == 2


def test_write_with_parameters_is_sent_once(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        raise flight.FlightUnavailableError("stopping")
        yield

    served.scripts = [fails]
    with pytest.raises(ApiError, match="stopping"):
        client.sql("INSERT INTO t VALUES (?)", [1])
    assert calls(served) == ["prepare", "bind", "info", "get"]
    assert runtime.asked == []


def test_pool_keeps_the_statements_used_last() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.closed = 0

        def do_action(self, action: flight.Action, _options: object) -> list[object]:
            self.closed += 1
            return []

    pool, server = PreparedPool(most_idle=2), Recorder()
    for name in ("a", "b", "c"):
        pool.give_back(server, None, PreparedHandle(name, name.encode()))
    assert server.closed == 1
    assert [each.sql for each in pool.clear()] == ["b", "c"]
    assert pool.clear() == []
