"""Asynchronous queries through a real client."""

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway_core import errors
from tests.gateway.flight.action_services import ROWS, SCHEMA, act, answer, service_of
from tests.gateway.flight.serving import KEYS, serving


async def test_the_actions_are_listed() -> None:
    async with serving() as server:
        listed = await server.ask(lambda c: [each.type for each in c.list_actions()])
    assert listed[:4] == [
        "SubmitAsyncQuery", "GetAsyncQueryStatus", "GetAsyncQueryResult", "CancelAsyncQuery",
    ]  # fmt: skip


async def test_a_query_from_its_submission_to_its_rows() -> None:
    async with service_of() as (server, service):
        submission = {"sql": "SELECT $1", "parameters": [7], "timeout_seconds": 5}
        submitted = await answer(server, "SubmitAsyncQuery", submission)
        job = service.last
        assert submitted == {"query_id": job.job_id, "status": "PENDING"}
        assert (job.request.parameters, job.request.timeout_s) == ({"1": 7}, 5.0)
        named = {"query_id": job.job_id}
        assert await answer(server, "GetAsyncQueryStatus", named) == submitted
        service.succeed(job, SCHEMA, ROWS, ROWS.slice(1))
        assert await answer(server, "GetAsyncQueryStatus", named) == {
            **named,
            "status": "SUCCEEDED",
            "result": {"total_row_count": 3, "total_chunk_count": 2},
        }
        first = await server.ask(act("GetAsyncQueryResult", named))
        assert pa.ipc.open_stream(first).read_all() == pa.Table.from_batches([ROWS])
        second = await server.ask(act("GetAsyncQueryResult", {**named, "chunk_index": 1}))
        assert pa.ipc.open_stream(second).read_all().to_pylist() == [{"id": 2, "name": None}]


async def test_an_empty_answer_is_its_schema() -> None:
    async with service_of() as (server, service):
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        job = service.succeed(service.last, SCHEMA)
        body = await server.ask(act("GetAsyncQueryResult", {"query_id": job.job_id}))
        assert pa.ipc.open_stream(body).read_all() == SCHEMA.empty_table()


async def test_a_failed_query_tells_its_error() -> None:
    async with service_of() as (server, service):
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        job = service.fail(service.last, "TIMEOUT", "too slow")
        assert await answer(server, "GetAsyncQueryStatus", {"query_id": job.job_id}) == {
            "query_id": job.job_id,
            "status": "FAILED",
            "error": {"error_code": "TIMEOUT", "message": "too slow"},
        }


async def test_cancelling_says_whether_it_was_cancelled() -> None:
    async with service_of() as (server, service):
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        first = {"query_id": service.last.job_id}
        assert await answer(server, "CancelAsyncQuery", first) == {
            **first, "cancelled": True, "status": "CANCELLED",
        }  # fmt: skip
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        second = {"query_id": service.succeed(service.last, SCHEMA).job_id}
        assert await answer(server, "CancelAsyncQuery", second) == {
            **second, "cancelled": False, "status": "SUCCEEDED",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("SubmitAsyncQuery", b"{", "not JSON"),
        ("SubmitAsyncQuery", b"{}", '"sql"'),
        ("SubmitAsyncQuery", b'{"sql": " "}', "empty"),
        ("GetAsyncQueryStatus", b"{", "not JSON"),
        ("GetAsyncQueryStatus", b"[]", "JSON object"),
        ("CancelAsyncQuery", b"{}", "query_id"),
    ],
)
async def test_a_body_that_makes_no_sense_is_invalid(name: str, body: bytes, says: str) -> None:
    async with service_of() as (server, _):
        with pytest.raises(pa.ArrowInvalid, match=says):
            await server.ask(act(name, body))


@pytest.mark.parametrize("job_id", ["01ABC-DEF-456-789", "?"])
async def test_an_unknown_query_is_not_found(job_id: str) -> None:
    async with service_of() as (server, _):
        for name in ("GetAsyncQueryStatus", "GetAsyncQueryResult", "CancelAsyncQuery"):
            with pytest.raises(pa.ArrowKeyError, match="no query"):
                await server.ask(act(name, {"query_id": job_id}))


async def test_what_has_no_rows_to_show_says_why() -> None:
    async with service_of() as (server, service):

        async def refused(error: type[Exception], says: str, index: object = 0) -> None:
            body = {"query_id": service.last.job_id, "chunk_index": index}
            with pytest.raises(error, match=says) as failed:
                await server.ask(act("GetAsyncQueryResult", body))
            assert "Traceback" not in str(failed.value)

        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        await refused(flight.FlightUnavailableError, "is PENDING")
        service.succeed(service.last, SCHEMA, ROWS)
        await refused(pa.ArrowKeyError, "no chunk 1", 1)
        await refused(pa.ArrowInvalid, "chunk_index", "x")
        service.damaged_from = 0
        await refused(flight.FlightInternalError, "damaged")
        service.expire(service.last)
        await refused(pa.ArrowKeyError, "expired")
        service.fail(service.last, "EXECUTION_FAILED", "divided by zero")
        await refused(flight.FlightInternalError, "divided by zero")
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
        await server.ask(act("CancelAsyncQuery", {"query_id": service.last.job_id}))
        await refused(flight.FlightCancelledError, "was cancelled")


async def test_a_read_only_key_neither_writes_nor_cancels() -> None:
    async with service_of(KEYS) as (server, service):
        await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}, "reader"))
        for name, body in (
            ("SubmitAsyncQuery", {"sql": "INSERT INTO t VALUES (1)"}),
            ("CancelAsyncQuery", {"query_id": service.last.job_id}),
        ):
            with pytest.raises(flight.FlightUnauthorizedError, match=":rw"):
                await server.ask(act(name, body, "reader"))
        with pytest.raises(pa.ArrowKeyError):
            await server.ask(act("CancelAsyncQuery", {"query_id": service.last.job_id}, "writer"))


@pytest.mark.parametrize(
    "failure",
    [errors.StateAwayError("away"), errors.OverloadedError("away", 1)],
)
async def test_what_may_pass_is_unavailable(failure: errors.CarawayError) -> None:
    async with service_of() as (server, service):
        service.failure = failure
        with pytest.raises(flight.FlightUnavailableError, match=r"away|does not respond"):
            await server.ask(act("SubmitAsyncQuery", {"sql": "SELECT 1"}))
