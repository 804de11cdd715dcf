import datetime
import json
from collections.abc import Iterator

import pytest

from caraway.client import Client
from caraway.errors import ApiError, BrokenResponseError
from caraway.rows.formats import Format
from tests.client.runtime import Answer, FakeRuntime, Pauses, arrow_body, nobody, pausing

ROWS = arrow_body([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Alan"}])


@pytest.fixture
def client(runtime: FakeRuntime) -> Iterator[Client]:
    with pausing(Pauses(), http_url=runtime.endpoint) as client:
        yield client


def test_sql_sends_plain_text_and_returns_rows(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/sql", Answer(body=ROWS))

    rows = client.sql("SELECT 'ä'").to_pylist()

    assert rows == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Alan"}]
    assert runtime.asked[0].body == "SELECT 'ä'".encode()
    assert runtime.asked[0].headers["content-type"] == "text/plain"
    assert runtime.asked[0].headers["accept"] == "application/vnd.apache.arrow.stream"


def test_parameters_are_sent_as_json(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/sql", Answer(body=ROWS))

    client.sql("SELECT :n", {"n": 1})

    assert runtime.asked[0].headers["content-type"] == "application/json"
    assert json.loads(runtime.asked[0].body) == {"sql": "SELECT :n", "parameters": {"n": 1}}


def test_parameters_can_be_positional(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/sql", Answer(body=ROWS))

    client.sql("SELECT $1, $2", [1, datetime.date(2025, 1, 2)])

    assert json.loads(runtime.asked[0].body)["parameters"] == [1, "2025-01-02"]


@pytest.mark.parametrize("body", [b"", b"[1]\n", b"<html>\n"])
def test_a_body_without_rows_is_rejected(runtime: FakeRuntime, body: bytes) -> None:
    runtime.answers("POST /v1/sql", Answer(body=body))

    with (
        Client(http_url=runtime.endpoint, max_retries=0) as client,
        pytest.raises(BrokenResponseError, match="the server sent"),
    ):
        client.sql("SELECT 1")


def test_a_stream_without_its_end_is_incomplete(runtime: FakeRuntime) -> None:
    # As from a proxy that ends a response which its server did not.
    runtime.answers("POST /v1/sql", Answer(body=ROWS[:-8]))

    with (
        Client(http_url=runtime.endpoint) as client,
        pytest.raises(BrokenResponseError, match="the end of the rows is missing"),
    ):
        client.sql("SELECT 1")


@pytest.mark.parametrize("format", Format)
def test_chunks_are_requested_by_media_type(
    runtime: FakeRuntime, client: Client, format: Format
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"abc"))

    assert b"".join(client.sql_chunks("SELECT 1", format=format)) == b"abc"
    assert runtime.asked[0].headers["accept"] == format.media_type


def test_a_busy_server_is_retried(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/sql", Answer(429, b"queue is full"))

    with pytest.raises(ApiError, match="queue is full"):
        client.sql("SELECT 1")

    assert len(runtime.asked) == 4
    client.set_max_retries(1)
    with pytest.raises(ApiError):
        client.sql("SELECT 1")
    assert len(runtime.asked) == 6


def test_lists_are_fetched_from_their_routes(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/datasets", Answer(body=b'[{"name":"orders"}]'))
    runtime.answers("GET /v1/catalogs", Answer(body=b'[{"name":"lake"}]'))
    runtime.answers("GET /v1/status", Answer(body=b'[{"name":"http"}]'))

    assert client.datasets() == [{"name": "orders"}]
    assert client.datasets(status=True) == [{"name": "orders"}]
    assert client.catalogs() == [{"name": "lake"}]
    assert client.status() == [{"name": "http"}]
    assert [asked.query for asked in runtime.asked[:2]] == [{}, {"status": "true"}]


def test_csv_is_requested_in_the_query_and_the_header(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/catalogs", Answer(body=b"from,name\n"))

    assert client.listing("catalogs", format=Format.CSV) == "from,name\n"
    assert runtime.asked[0].query == {"format": "csv"}
    assert runtime.asked[0].headers["accept"] == "text/csv"


def test_a_list_route_that_sends_no_list_is_rejected(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/datasets", Answer(body=b"{}"))

    with pytest.raises(BrokenResponseError, match="expected a JSON array"):
        client.datasets()


def test_active_statements_are_unpacked_and_can_be_cancelled(
    runtime: FakeRuntime, client: Client
) -> None:
    query = {"query_id": "a/b", "protocol": "http", "sql_preview": "SELECT", "started_at_ms": 1}
    body = json.dumps({"queries": [query], "total_count": 1}).encode()
    runtime.answers("GET /v1/sql/active", Answer(body=body))
    runtime.answers("POST /v1/sql/a%2Fb/cancel", Answer(body=b'{"status":"cancelled"}'))

    assert client.active_queries() == [query]
    client.cancel_active_query("a/b")

    assert runtime.asked[1].path == "/v1/sql/a%2Fb/cancel"


def test_cancelling_an_unknown_statement_fails(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/sql/x/cancel", Answer(404, b'{"error":"no query x"}'))

    with pytest.raises(ApiError, match="no query x"):
        client.cancel_active_query("x")


def test_not_ready_is_a_result_and_not_retried(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/ready", Answer(503, b"not ready"), Answer(body=b"ready"))

    assert client.readiness(verbose=True) == (False, "not ready")
    assert client.is_service_ready()
    assert [asked.query for asked in runtime.asked] == [{"verbose": "true"}, {}]


def test_only_ok_is_healthy(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /health", Answer(body=b"ok\n"), Answer(500), Answer(body=b"<html>"))

    assert [client.is_service_healthy() for _ in range(3)] == [True, False, False]


def test_an_unreachable_runtime_is_neither_healthy_nor_ready() -> None:
    with nobody() as endpoint, Client(http_url=endpoint) as client:
        assert not client.is_service_healthy()
        assert not client.is_service_ready()
