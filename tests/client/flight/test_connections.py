"""Statements over Flight, against a fake server with scripted failures."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway import ApiError, BrokenResponseError, Client, UnreachableError
from tests.client.flight_server import (
    FakeFlight,
    flight_running,
    held_port,
    numbers,
    one_batch,
)
from tests.client.runtime import WAIT_S, Answer, FakeRuntime, Pauses, arrow_body, pausing
from tests.kit.certificates import make_certificate

ROUTE = "POST /v1/sql"
OVER_HTTP = Answer(body=arrow_body([{"n": 7}]))
LOST = "failed to connect to all addresses"


@pytest.fixture
def served() -> Iterator[FakeFlight]:
    with flight_running() as server:
        yield server


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(served: FakeFlight, runtime: FakeRuntime, pauses: Pauses) -> Iterator[Client]:
    runtime.answers(ROUTE, OVER_HTTP)
    with pausing(
        pauses,
        "secret",
        http_url=runtime.endpoint,
        flight_url=served.url,
        user_agent="mine/1",
    ) as client:
        yield client


@pytest.fixture
def flight_only(served: FakeFlight, pauses: Pauses) -> Iterator[Client]:
    with pausing(pauses, "", http_url="", flight_url=served.url) as client:
        yield client


def breaks_off() -> Iterator[pa.RecordBatch]:
    yield numbers(0, 3)
    yield numbers(3, 3)
    raise flight.FlightInternalError("the executor is gone")


def never_begins() -> Iterator[pa.RecordBatch]:
    raise flight.FlightUnavailableError("starting")
    yield


def endless() -> Iterator[pa.RecordBatch]:
    while True:
        yield numbers(0, 1000)


def threads_of_clients() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("caraway-flight")]


def test_rows_come_over_flight_with_key_and_agent(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    assert client.sql("SELECT n").to_pylist() == [{"n": 0}, {"n": 1}, {"n": 2}]

    assert served.asked == [("info", "SELECT n"), ("get", "SELECT n")]
    assert runtime.asked == []
    headers = served.headers.seen[0]
    assert headers["authorization"] == ["Bearer secret"]
    assert " mine/1 caraway/" in headers["user-agent"][0]


def test_each_batch_is_handed_over_as_it_arrives(client: Client, served: FakeFlight) -> None:
    served.scripts = [lambda: iter([numbers(0, 2), numbers(2, 3)])]
    seen: list[int] = []

    found = client.sql("SELECT n", on_data=lambda batch: seen.append(batch.num_rows))

    assert (seen, found.num_rows) == ([2, 3], 5)


def test_an_answer_that_ends_early_is_an_error(client: Client, served: FakeFlight) -> None:
    served.scripts = [breaks_off]

    with client.reader("SELECT n") as reader, pytest.raises(ApiError, match="executor is gone"):
        for _ in reader:
            pass

    # It is neither repeated nor continued over HTTP: rows have been handed over.
    assert [name for name, _ in served.asked] == ["info", "get"]
    assert reader.rows_read == 6


def test_fewer_rows_than_announced_are_an_error(flight_only: Client, served: FakeFlight) -> None:
    served.total_records = 4

    with pytest.raises(BrokenResponseError, match="announced 4 rows and sent 3"):
        flight_only.sql("SELECT n")


def test_http_takes_over_where_nobody_listens(runtime: FakeRuntime, pauses: Pauses) -> None:
    runtime.answers(ROUTE, OVER_HTTP)
    with (
        held_port() as port,
        pausing(pauses, http_url=runtime.endpoint, flight_url=f"grpc://127.0.0.1:{port}") as client,
    ):
        assert client.sql("SELECT n").to_pylist() == [{"n": 7}]
    assert pauses.seconds == []


@pytest.mark.parametrize(
    "refusal", [flight.FlightUnavailableError("starting"), NotImplementedError("no Flight SQL")]
)
def test_http_takes_over_from_a_server_that_cannot(
    client: Client, served: FakeFlight, refusal: Exception
) -> None:
    served.refusals = [refusal]

    assert client.sql("SELECT n").to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (flight.FlightUnauthenticatedError("the key is not known"), 401),
        (flight.FlightUnauthorizedError("read only"), 403),
        (pa.ArrowInvalid("syntax error"), 400),
        (flight.FlightTimedOutError("too long"), 504),
        (flight.FlightCancelledError("cancelled"), 499),
        (flight.FlightInternalError("failed"), 500),
    ],
)
def test_errors_of_the_server_are_final(
    client: Client, served: FakeFlight, runtime: FakeRuntime, refusal: Exception, status: int
) -> None:
    served.refusals = [refusal]

    with pytest.raises(ApiError) as caught:
        client.sql("SELECT n")

    assert caught.value.status == status
    assert caught.value.message.startswith(str(refusal))
    assert "debug context" not in caught.value.message
    assert runtime.asked == []


def test_a_statement_that_reads_is_tried_again(
    flight_only: Client, served: FakeFlight, pauses: Pauses
) -> None:
    served.refusals = [flight.FlightUnavailableError("starting")]
    served.scripts = [never_begins, one_batch]

    assert flight_only.sql("SELECT n").num_rows == 3
    assert pauses.seconds == [0.1, 0.2]


def test_retries_can_be_turned_off(flight_only: Client, served: FakeFlight) -> None:
    served.refusals = [flight.FlightUnavailableError("starting")]
    flight_only.set_max_retries(0)

    with pytest.raises(ApiError, match="starting"):
        flight_only.sql("SELECT n")


def test_a_write_that_may_have_begun_is_never_sent_again(
    client: Client, served: FakeFlight, runtime: FakeRuntime, pauses: Pauses
) -> None:
    served.scripts = [never_begins, one_batch]

    with pytest.raises(ApiError, match="starting"):
        client.sql("INSERT INTO t VALUES (1)")

    assert [name for name, _ in served.asked] == ["info", "get"]
    assert (runtime.asked, pauses.seconds) == ([], [])


def test_a_write_goes_over_http_if_it_cannot_have_begun(
    client: Client, served: FakeFlight, runtime: FakeRuntime
) -> None:
    served.refusals = [flight.FlightUnavailableError("starting")]

    client.sql("INSERT INTO t VALUES (1)")

    assert [name for name, _ in served.asked] == ["info"]
    assert len(runtime.asked) == 1


def test_a_write_over_http_is_not_sent_again(runtime: FakeRuntime, pauses: Pauses) -> None:
    runtime.answers(ROUTE, Answer(503, b"down"))
    with (
        pausing(pauses, http_url=runtime.endpoint) as client,
        pytest.raises(ApiError, match="down"),
    ):
        client.sql("DELETE FROM t")
    assert len(runtime.asked) == 1


def test_leaving_the_reader_cancels_the_statement(client: Client, served: FakeFlight) -> None:
    served.scripts = [endless]

    with client.reader("SELECT n") as reader:
        next(iter(reader))

    assert served.cancelled.wait(WAIT_S)
    assert threads_of_clients() == []
    with pytest.raises(BrokenResponseError, match="closed before the last row"):
        reader.read_next_batch()


def test_broken_answers_leave_no_threads(client: Client, served: FakeFlight) -> None:
    served.scripts = [breaks_off]
    for _ in range(20):
        with pytest.raises(ApiError):
            client.sql("SELECT n")
    assert threads_of_clients() == []


def test_a_server_that_restarts_is_found_again(pauses: Pauses) -> None:
    with flight_running() as first:
        client = pausing(pauses, http_url="", flight_url=first.url)
        assert client.sql("SELECT n").num_rows == 3
        port = first.port
    with client:
        with pytest.raises((UnreachableError, BrokenResponseError, ApiError)):
            client.sql("SELECT n")
        with flight_running(port=port):
            assert client.sql("SELECT n").num_rows == 3


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    make_certificate(tmp_path / "server.crt", tmp_path / "server.key", is_authority=True)
    return tmp_path / "server.crt", tmp_path / "server.key"


def test_a_known_certificate_is_accepted_and_an_unknown_one_is_not(
    certificate: tuple[Path, Path], runtime: FakeRuntime
) -> None:
    crt, key = certificate
    runtime.answers(ROUTE, OVER_HTTP)
    with flight_running((crt.read_bytes(), key.read_bytes())) as served:
        url = f"grpc+tls://127.0.0.1:{served.port}"
        with Client(http_url="", flight_url=url, tls_root_cert=crt) as trusting:
            assert trusting.sql("SELECT n").num_rows == 3
        with (
            Client(http_url=runtime.endpoint, flight_url=url, max_retries=0) as careful,
            pytest.raises(UnreachableError, match=r"(?i)certificate|handshake"),
        ):
            careful.sql("SELECT n")
    # A statement and a key that were to be encrypted do not go in plain text instead.
    assert runtime.asked == []


def test_a_closed_client_refuses_statements(client: Client) -> None:
    client.sql("SELECT n")
    client.close()

    with pytest.raises(Exception, match="closed"):
        client.sql("SELECT n")
