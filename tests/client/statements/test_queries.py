import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from caraway import progress
from caraway.client import Client
from caraway.errors import ApiError, BrokenResponseError
from caraway.requests import arguments
from caraway.rows.formats import ResultFormat
from caraway.statements.queries import QueryProgress
from caraway_core.errors import CarawayError
from caraway_gateway.api.queries import documents
from tests.client.runtime import Answer, FakeRuntime, Pauses, arrow_body, pausing

SUBMIT, STATUS, RESULTS = (
    "POST /v1/queries",
    "GET /v1/queries/Q-1/status",
    "GET /v1/queries/Q-1/results",
)
LINES = b'{"n":1}\n{"n":2}\n'


def said(document: dict[str, Any], status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(document).encode(), headers)


def state(status: str, **more: Any) -> Answer:
    return said({"query_id": "Q-1", "status": status, **more})


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(runtime: FakeRuntime, pauses: Pauses) -> Iterator[Client]:
    with pausing(pauses, http_url=runtime.endpoint) as client:
        yield client


def test_a_submission_contains_only_the_given_fields(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(SUBMIT, said({"query_id": "Q-1", "status": "PENDING"}, 202))

    assert client.query("SELECT 1").id == "Q-1"
    client.query("SELECT $1", [7], timeout_seconds=5, maximum_size=9, idempotency_key="k")

    plain, full = runtime.asked
    assert json.loads(plain.body) == {"sql": "SELECT 1"}
    assert len(plain.headers["idempotency-key"]) == 36
    assert json.loads(full.body) == {
        "sql": "SELECT $1", "parameters": [7], "timeout_seconds": 5, "maximum_size": 9,
    }  # fmt: skip
    assert full.headers["idempotency-key"] == "k"
    assert full.headers["content-type"] == "application/json"


def test_a_retried_submission_keeps_its_key(
    runtime: FakeRuntime, client: Client, pauses: Pauses
) -> None:
    accepted = said({"query_id": "Q-1", "status": "PENDING"}, 202)
    away = said({"error": "away"}, 503, **{"Retry-After": "2"})
    runtime.answers(SUBMIT, away, Answer(202, accepted.body, breaks_off=True), accepted)

    assert client.query("SELECT 1").id == "Q-1"

    assert len({asked.headers["idempotency-key"] for asked in runtime.asked}) == 1
    assert len(runtime.asked) == 3
    assert pauses.seconds[0] == 2


def test_an_invalid_submission_is_not_retried(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(SUBMIT, said({"error": "no sql"}, 422))

    with pytest.raises(ApiError, match="no sql"):
        client.query("")

    assert len(runtime.asked) == 1


def test_a_response_without_an_id_is_an_error(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(SUBMIT, said({}, 202))

    with pytest.raises(BrokenResponseError, match="query_id"):
        client.query("SELECT 1")


def test_the_status_has_progress_and_error(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(
        STATUS,
        state("RUNNING", progress={"tasks_done": 1, "tasks_total": 4, "rows": 9, "new": 1}),
        state("FAILED", error={"error_code": "TIMEOUT", "message": "too slow"}),
    )
    query = client.open_query("Q-1")

    running, failed = query.status(), query.status(wait=2.5)

    assert running.progress == QueryProgress(tasks_done=1, tasks_total=4, rows=9)
    assert not running.is_over
    assert (failed.error_code, failed.message) == ("TIMEOUT", "too slow")
    assert failed.is_over
    assert not failed.has_succeeded
    assert [asked.query for asked in runtime.asked] == [{}, {"wait": "2.5"}]


def test_waiting_ends_with_the_query(runtime: FakeRuntime, client: Client, pauses: Pauses) -> None:
    runtime.answers(STATUS, state("PENDING"), state("RUNNING"), state("SUCCEEDED"))

    assert client.open_query("Q-1").wait().has_succeeded

    assert [asked.query for asked in runtime.asked] == [{"wait": "20"}] * 3
    # The server did not wait as requested, so the client pauses between polls.
    assert pauses.seconds == [0.5, 0.5]


def test_waiting_ends_after_the_timeout(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(STATUS, state("RUNNING"))

    assert client.open_query("Q-1").wait(timeout_s=0).status == "RUNNING"


def test_waiting_survives_a_restart_of_the_server(
    runtime: FakeRuntime, client: Client, pauses: Pauses
) -> None:
    runtime.answers(STATUS, *[Answer(503, b"starting")] * 8, state("SUCCEEDED"))

    assert client.open_query("Q-1").wait().has_succeeded

    assert sum(pauses.seconds) == pytest.approx(25.5)


def test_each_state_can_be_watched(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(STATUS, state("PENDING"), state("RUNNING"), state("CANCELLED"))

    states = [each.status for each in client.open_query("Q-1").watch(0.001)]

    assert states == ["PENDING", "RUNNING", "CANCELLED"]


def test_rows_are_fetched_once_the_query_has_finished(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=arrow_body([{"n": 1}, {"n": 2}])))

    assert client.open_query("Q-1").results().to_pylist() == [{"n": 1}, {"n": 2}]
    assert runtime.asked[-1].headers["accept"] == "application/vnd.apache.arrow.stream"


def test_progress_is_reported_until_the_end(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(
        STATUS, state("RUNNING", progress={"tasks_done": 1, "tasks_total": 2}), state("SUCCEEDED")
    )
    printed = io.StringIO()

    client.open_query("Q-1").wait(on_progress=lambda each: progress.show(each, printed))

    assert printed.getvalue() == "RUNNING: 1 of 2 tasks\nSUCCEEDED\n"


@pytest.mark.parametrize(
    ("format", "accept"),
    [
        (ResultFormat.TABLE, "text/plain"),
        (ResultFormat.CSV, "text/csv"),
        (ResultFormat.ARROW, "application/vnd.apache.arrow.stream"),
        (ResultFormat.PARQUET, "application/vnd.apache.parquet"),
    ],
)
def test_results_are_requested_by_media_type(
    runtime: FakeRuntime, client: Client, format: ResultFormat, accept: str
) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=b"\x00\xff\n"))

    assert b"".join(client.open_query("Q-1").chunks(format)) == b"\x00\xff\n"
    assert runtime.asked[-1].headers["accept"] == accept


@pytest.mark.parametrize(
    ("body", "expected"), [(b"", []), (LINES, [{"n": 1}, {"n": 2}]), (b'{"n":1}', [{"n": 1}])]
)
def test_json_is_built_from_lines(
    runtime: FakeRuntime, client: Client, body: bytes, expected: list[dict[str, int]]
) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=body))

    array = b"".join(client.open_query("Q-1").chunks(ResultFormat.JSON))

    assert json.loads(array) == expected


def test_a_failed_query_has_no_rows(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(STATUS, state("FAILED"))
    runtime.answers(RESULTS, said({"error": "divided by zero", "status": "FAILED"}, 500))

    with pytest.raises(ApiError, match="divided by zero"):
        client.open_query("Q-1").results()


def test_a_truncated_result_is_an_error(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    body = arrow_body([{"n": 1}, {"n": 2}])
    runtime.answers(RESULTS, Answer(body=body, breaks_off=True))

    with pytest.raises(BrokenResponseError):
        client.open_query("Q-1").results()


def test_cancel_returns_the_state(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("POST /v1/queries/Q-1/cancel", state("CANCELLED"))

    assert client.open_query("Q-1").cancel().status == "CANCELLED"


def test_an_id_is_quoted(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/queries/a%2Fb/status", state("PENDING"))

    assert client.open_query("a/b").status().status == "PENDING"


@pytest.mark.parametrize("status", ["X", "fail", "running,failed"])
def test_an_unknown_status_is_an_error(status: str, runtime: FakeRuntime, client: Client) -> None:
    with pytest.raises(CarawayError, match=f"no status '{status}'; a query is one of pending, "):
        client.list_queries(status)
    assert runtime.asked == []


def test_the_statuses_are_those_of_the_server() -> None:
    assert set(arguments.QUERY_STATUSES) == set(documents.FILTERS)


def test_the_list_is_unpacked(runtime: FakeRuntime, client: Client) -> None:
    runtime.answers("GET /v1/queries", said({"queries": [{"query_id": "Q-1"}], "total_count": 1}))

    assert client.list_queries() == [{"query_id": "Q-1"}]
    client.list_queries("failed", 5)

    assert [asked.query for asked in runtime.asked] == [
        {"limit": "100"}, {"limit": "5", "status": "failed"},
    ]  # fmt: skip
