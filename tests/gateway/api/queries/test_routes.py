import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_scheduler.jobs.model import JobProgress
from tests.gateway.api.queries.serving import KEYS, SCHEMA, Serving, rows, serving
from tests.kit.turns import turn

ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"


async def test_a_submission_answers_202_with_the_urls(server: Serving) -> None:
    response = await server.post(
        json={"sql": "SELECT $1", "parameters": [7], "timeout_seconds": 5, "maximum_size": 9,
              "dataset": "ignored"}
    )  # fmt: skip
    job = server.service.last
    assert response.status_code == 202
    assert response.json() == {
        "query_id": job.job_id,
        "status": "PENDING",
        "status_url": f"/v1/queries/{job.job_id}/status",
        "results_url": f"/v1/queries/{job.job_id}/results",
    }
    assert job.request.sql == "SELECT $1"
    assert job.request.parameters == {"1": 7}
    assert (job.request.timeout_s, job.request.maximum_size) == (5.0, 9)


async def test_the_status_is_flat_and_names_the_error(server: Serving) -> None:
    job = await server.submit()
    path = f"/{job.job_id}/status"
    assert (await server.get(path)).json() == {"query_id": job.job_id, "status": "PENDING"}
    server.service.run(job)
    server.service.progresses[job.job_id] = JobProgress(1, 2, 3, 4, 5, 6)
    assert (await server.get(path)).json() == {
        "query_id": job.job_id,
        "status": "RUNNING",
        "progress": {"stages_done": 1, "stages_total": 2, "tasks_done": 3, "tasks_total": 4,
                     "rows": 5, "bytes": 6},
    }  # fmt: skip
    server.service.fail(job, "TIMEOUT", "too slow")
    assert (await server.get(path)).json() == {
        "query_id": job.job_id,
        "status": "FAILED",
        "error": {"error_code": "TIMEOUT", "message": "too slow"},
    }


async def test_the_object_has_the_manifest_and_the_first_chunk(server: Serving) -> None:
    job = await server.succeeded(rows(0, 2), rows(2, 1))
    assert (await server.get(f"/{job.job_id}")).json() == {
        "query_id": job.job_id,
        "status": "SUCCEEDED",
        "manifest": {
            "format": "ARROW_IPC",
            "schema": {
                "column_count": 3,
                "columns": [
                    {"name": "id", "type_name": "Int64", "nullable": False, "position": 0},
                    {"name": "name", "type_name": "Utf8", "nullable": True, "position": 1},
                    {"name": "at", "type_name": 'Timestamp(Microsecond, Some("UTC"))',
                     "nullable": True, "position": 2},
                ],
            },
            "total_row_count": 3,
            "total_chunk_count": 2,
        },
        "created_at": "2026-01-02T03:04:05.600000+00:00",
        "started_at": "2026-01-02T03:04:05.600000+00:00",
        "completed_at": "2026-01-02T03:04:06.600000+00:00",
        "expires_at": "2026-01-02T15:04:05.600000+00:00",
        "result": {
            "chunk_index": 0,
            "row_offset": 0,
            "row_count": 2,
            "next_chunk_index": 1,
            "next_chunk_url": f"/v1/queries/{job.job_id}/results/chunks/1",
            "data_array": [
                {"id": 0, "name": "n0", "at": "1970-01-01T00:00:00Z"},
                {"id": 1, "name": "n1", "at": "1970-01-01T00:00:00Z"},
            ],
        },
    }  # fmt: skip


async def test_the_object_of_a_query_under_way_has_neither(server: Serving) -> None:
    job = await server.submit()
    assert (await server.get(f"/{job.job_id}")).json() == {
        "query_id": job.job_id,
        "status": "PENDING",
        "created_at": "2026-01-02T03:04:05.600000+00:00",
    }


async def test_chunks_follow_each_other_and_the_last_names_no_next(server: Serving) -> None:
    job = await server.succeeded(rows(0, 2), rows(2, 3))
    last = (await server.get(f"/{job.job_id}/results/chunks/1")).json()
    assert last["data_array"][0]["id"] == 2
    del last["data_array"]
    assert last == {"chunk_index": 1, "row_offset": 2, "row_count": 3}


async def test_results_are_one_chunk_as_json(server: Serving) -> None:
    job = await server.succeeded(rows(0, 2), rows(2, 3))
    first = await server.get(f"/{job.job_id}/results?format=JSON")
    second = await server.get(f"/{job.job_id}/results?partition=1")
    assert first.headers["content-type"] == "application/json"
    assert first.json()["chunk_index"] == 0
    assert [row["id"] for row in second.json()["data_array"]] == [2, 3, 4]


async def test_an_empty_result_has_an_empty_chunk_0(server: Serving) -> None:
    empty = {"chunk_index": 0, "row_offset": 0, "row_count": 0, "data_array": []}
    job = await server.succeeded()
    described = (await server.get(f"/{job.job_id}")).json()
    assert described["manifest"]["total_chunk_count"] == 0
    assert described["manifest"]["schema"]["column_count"] == 3
    assert described["result"] == empty
    for tail in ("results", "results/chunks/0"):
        response = await server.get(f"/{job.job_id}/{tail}")
        assert (response.status_code, response.json()) == (200, empty)
    assert (await server.get(f"/{job.job_id}/results/chunks/1")).status_code == 404
    whole = await server.get(f"/{job.job_id}/results", accept=ARROW)
    assert pa.ipc.open_stream(whole.content).read_all() == SCHEMA.empty_table()


def read(form: str, body: bytes) -> list[int]:
    """Return the ids in an answer."""
    if form == ARROW:
        table = pa.ipc.open_stream(body).read_all()
        assert table.schema == SCHEMA
        return [int(i) for i in table.column("id").to_pylist()]
    if form == PARQUET:
        return [int(i) for i in pq.read_table(io.BytesIO(body)).column("id").to_pylist()]
    text = body.decode()
    if form == "text/csv":
        return [int(row["id"]) for row in csv.DictReader(io.StringIO(text))]
    if form == "text/plain":
        return [int(line.split("|")[1]) for line in text.splitlines()[3:-1]]
    return [json.loads(line)["id"] for line in text.splitlines()]


@pytest.mark.parametrize("form", [ARROW, PARQUET, "text/csv", "text/plain", "application/x-ndjson"])
async def test_other_formats_are_the_whole_answer_or_one_chunk(server: Serving, form: str) -> None:
    job = await server.succeeded(rows(0, 3_000), rows(3_000, 2_000), rows(5_000, 1))
    whole = await server.get(f"/{job.job_id}/results", accept=form)
    assert whole.headers["content-type"].startswith(form)
    assert "Accept" in whole.headers["vary"]
    assert read(form, whole.content) == list(range(5_001))
    for tail in ("results/chunks/1", "results?partition=1"):
        chunk = await server.get(f"/{job.job_id}/{tail}", accept=form)
        assert read(form, chunk.content) == list(range(3_000, 5_000))


async def test_answers_are_compressed_where_that_is_accepted(server: Serving) -> None:
    job = await server.succeeded(rows(0, 2_000))
    response = await server.get(f"/{job.job_id}", **{"accept-encoding": "gzip, deflate"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.json()["result"]["row_count"] == 2_000


async def test_rows_that_a_format_cannot_encode_are_406(server: Serving) -> None:
    schema = pa.schema([("i", pa.month_day_nano_interval())])
    job = await server.succeeded(schema=schema)
    for form in (PARQUET, "image/png"):
        response = await server.get(f"/{job.job_id}/results", accept=form)
        assert response.status_code == 406
        assert response.json()["error"]


async def test_waiting_ends_with_the_query(server: Serving) -> None:
    job = await server.submit()
    asked = asyncio.create_task(server.get(f"/{job.job_id}/status?wait=60"))
    await server.service.waiting.wait()
    server.service.succeed(job, SCHEMA)
    assert (await asked).json()["status"] == "SUCCEEDED"


async def test_waiting_ends_with_the_time(server: Serving) -> None:
    job = await server.submit()
    response = await server.get(f"/{job.job_id}/status?wait=0.01")
    assert (response.status_code, response.json()["status"]) == (200, "PENDING")


async def test_waiting_ends_with_the_client(server: Serving) -> None:
    job = await server.submit()
    app = server.api._transport.app  # type: ignore[attr-defined] # httpx hides it
    messages: Any = iter([{"type": "http.request", "body": b""}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        message = next(messages)
        if message["type"] == "http.disconnect":
            await server.service.waiting.wait()
        return message

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": f"/v1/queries/{job.job_id}/status",
        "query_string": b"wait=60", "headers": [], "http_version": "1.1", "scheme": "http",
        "server": ("caraway.test", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    async with asyncio.timeout(60):
        await app(scope, receive, send)
    assert sent[0]["status"] == 499
    assert not server.service.waiting.is_set()


async def test_a_reader_that_leaves_ends_the_reading(server: Serving) -> None:
    job = await server.succeeded(*(rows(i * 10_000, 10_000) for i in range(100)))
    app = server.api._transport.app  # type: ignore[attr-defined] # httpx hides it
    gone = asyncio.Event()
    begun = False

    async def receive() -> Any:
        nonlocal begun
        if begun:
            await gone.wait()
            return {"type": "http.disconnect"}
        begun = True
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        if message.get("body"):
            gone.set()
        await turn()

    scope = {
        "type": "http", "method": "GET", "path": f"/v1/queries/{job.job_id}/results",
        "query_string": b"", "headers": [(b"accept", b"text/csv")], "http_version": "1.1",
        "scheme": "http", "server": ("caraway.test", 80), "client": ("127.0.0.1", 1),
        "root_path": "",
    }  # fmt: skip
    async with asyncio.timeout(60):
        await app(scope, receive, send)
    assert server.service.reads < 50


async def test_the_list_is_newest_first_and_counts_what_it_returns(server: Serving) -> None:
    first = await server.submit("SELECT\n  1")
    second = await server.submit("SELECT " + "x" * 200)
    assert (await server.get()).json() == {
        "queries": [
            {"query_id": second.job_id, "status": "PENDING",
             "sql_preview": "SELECT " + "x" * 90 + "...",
             "created_at": "2026-01-02T03:04:06.600000+00:00"},
            {"query_id": first.job_id, "status": "PENDING", "sql_preview": "SELECT 1",
             "created_at": "2026-01-02T03:04:05.600000+00:00"},
        ],
        "total_count": 2,
    }  # fmt: skip
    assert (await server.get("?limit=1")).json()["total_count"] == 1


@pytest.mark.parametrize(
    ("status", "count"),
    [
        ("queued", 1), ("PENDING", 1), ("running", 1), ("completed", 1), ("Succeeded", 1),
        ("failed", 0), ("cancelled", 0), ("closed", 1), ("whatever", 3), ("", 3),
    ],
)  # fmt: skip
async def test_the_list_is_filtered_by_status(server: Serving, status: str, count: int) -> None:
    await server.submit()
    server.service.run(await server.submit())
    await server.succeeded(rows(0, 1))
    server.service.expire(await server.succeeded(rows(0, 1)))
    assert (await server.get(f"?status={status}")).json()["total_count"] == count


async def test_cancelling_answers_the_whole_object(server: Serving) -> None:
    job = await server.submit()
    response = await server.post(f"/{job.job_id}/cancel")
    assert response.status_code == 200
    assert response.json()["status"] == "CANCELLED"
    assert response.json()["created_at"]


async def test_cancelling_what_is_over_changes_nothing(server: Serving) -> None:
    job = await server.succeeded(rows(0, 1))
    response = await server.post(f"/{job.job_id}/cancel", **{"content-type": "application/json"})
    assert response.status_code == 200
    assert response.json()["status"] == "SUCCEEDED"
    assert response.json()["result"]["row_count"] == 1


async def test_the_same_idempotency_key_gives_the_same_query(server: Serving) -> None:
    key = {"idempotency-key": "a-1"}
    first, again = [await server.post(json={"sql": "SELECT 1"}, **key) for _ in range(2)]
    other = await server.post(json={"sql": "SELECT 2"}, **key)
    assert again.status_code == 202
    assert first.json() == again.json()
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["error"]


async def test_a_read_only_key_submits_but_does_not_cancel(tmp_path: Path) -> None:
    reader = {"x-api-key": "reader"}
    async with serving(tmp_path, KEYS) as server:
        job = await server.submit("INSERT INTO t VALUES (1)", **reader)
        assert job.is_read_only
        refused = await server.post(f"/{job.job_id}/cancel", **reader)
        assert refused.status_code == 403
        assert ":rw" in refused.json()["error"]
        assert (await server.get(f"/{job.job_id}", **reader)).json()["status"] == "PENDING"
