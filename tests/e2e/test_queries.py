"""Asynchronous queries of the real command: the error table, restarts and full disks."""

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.kit.deadlines import until
from tests.kit.processes import Child, child

MANIFEST = """\
version: v1
kind: Caraway
name: queries
runtime:
  auth: {api-key: {enabled: true, keys: ['ada:rw', 'bob:rw', 'eve:ro']}}
  jobs: {max_concurrent: 2, max_queued: 10}
"""
ROWS = 30_000
NUMBERS = f"SELECT value AS n FROM generate_series(1, {ROWS})"
# The engine can cancel it, whereas a cross join runs until it ends.
ENDLESS = "SELECT sum(value % 7) AS s FROM generate_series(1, 1000000000000000)"
OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "CLOSED")


def manifest(folder: Path, text: str = MANIFEST) -> Path:
    path = folder / "caraway.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def caraway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder = tmp_path_factory.mktemp("queries")
    with child(folder, manifest(folder)) as running:
        yield running


def call(on: Child, method: str, path: str, key: str = "ada", **options: Any) -> httpx.Response:
    headers = {"x-api-key": key, **options.pop("headers", {})}
    return on.api.request(method, f"/v1/queries{path}", headers=headers, **options)


def submit(on: Child, sql: str, key: str = "ada", **fields: Any) -> str:
    got = call(on, "POST", "", key, json={"sql": sql, **fields})
    assert got.status_code == 202, got.text
    assert got.json()["status_url"] == f"/v1/queries/{got.json()['query_id']}/status"
    return str(got.json()["query_id"])


def ended(on: Child, query_id: str, key: str = "ada") -> Mapping[str, Any]:
    def look() -> Mapping[str, Any]:
        got = call(on, "GET", f"/{query_id}/status?wait=30", key)
        assert got.status_code == 200, got.text
        told: Mapping[str, Any] = got.json()
        return told if told["status"] in OVER else {}

    return until(look, "the job is over", 120)


def refused(got: httpx.Response, status: int, *words: str) -> None:
    assert got.status_code == status, got.text
    error = got.json()["error"]
    assert all(word in error for word in words), error
    assert "Traceback" not in got.text


@pytest.fixture
def endless(caraway: Child) -> Iterator[str]:
    """Yield a job that runs until the test ends."""
    query_id = submit(caraway, ENDLESS)

    def runs() -> bool:
        return bool(call(caraway, "GET", f"/{query_id}/status").json()["status"] == "RUNNING")

    until(runs, "the job runs")
    yield query_id
    assert call(caraway, "POST", f"/{query_id}/cancel").status_code == 200


def test_answer_in_chunks_whole_and_in_every_form(caraway: Child) -> None:
    query_id = submit(caraway, NUMBERS)
    assert ended(caraway, query_id) == {"query_id": query_id, "status": "SUCCEEDED"}
    told = call(caraway, "GET", f"/{query_id}").json()
    assert told["manifest"]["total_row_count"] == ROWS
    rows, chunk = list(told["result"]["data_array"]), told["result"]
    while "next_chunk_index" in chunk:
        assert chunk["next_chunk_url"].endswith(f"/results/chunks/{chunk['next_chunk_index']}")
        chunk = caraway.api.get(chunk["next_chunk_url"], headers={"x-api-key": "ada"}).json()
        assert chunk["row_offset"] == len(rows)
        rows += chunk["data_array"]
    assert sorted(row["n"] for row in rows) == list(range(1, ROWS + 1))
    accept = {"accept": "application/vnd.apache.arrow.stream"}
    whole = call(caraway, "GET", f"/{query_id}/results", headers=accept)
    table = pa.ipc.open_stream(whole.content).read_all()
    assert sorted(table["n"].to_pylist()) == list(range(1, ROWS + 1))
    text = call(caraway, "GET", f"/{query_id}/results", headers={"accept": "text/csv"}).text
    assert len(text.splitlines()) == ROWS + 1


def test_running(caraway: Child, endless: str) -> None:
    got = call(caraway, "GET", f"/{endless}/results")
    refused(got, 425)
    assert got.json()["status"] == "RUNNING"
    refused(call(caraway, "GET", f"/{endless}/results/chunks/0"), 409)
    told = call(caraway, "GET", f"/{endless}/status?wait=0").json()
    assert told["progress"].keys() >= {"stages_done", "tasks_done", "rows", "bytes"}


def test_pending(caraway: Child, endless: str) -> None:
    others = [submit(caraway, ENDLESS, "bob"), submit(caraway, ENDLESS)]
    assert call(caraway, "GET", f"/{others[1]}/status").json()["status"] == "PENDING"
    refused(call(caraway, "GET", f"/{others[1]}/results"), 425)
    refused(call(caraway, "GET", f"/{others[1]}/results/chunks/0"), 409)
    for query_id, key in zip(others, ("bob", "ada"), strict=True):
        assert call(caraway, "POST", f"/{query_id}/cancel", key).status_code == 200


def test_failed(caraway: Child) -> None:
    query_id = submit(caraway, "SELECT * FROM nowhere")
    assert ended(caraway, query_id)["error"]["error_code"] == "SUBMISSION_FAILED"
    got = call(caraway, "GET", f"/{query_id}/results")
    refused(got, 500, "nowhere")
    assert got.json()["status"] == "FAILED"
    refused(call(caraway, "GET", f"/{query_id}/results/chunks/0"), 500, "nowhere")


def test_cancelled(caraway: Child) -> None:
    query_id = submit(caraway, ENDLESS)
    got = call(caraway, "POST", f"/{query_id}/cancel")
    assert (got.status_code, got.json()["status"]) == (200, "CANCELLED")
    again = call(caraway, "POST", f"/{query_id}/cancel")
    assert (again.status_code, again.json()) == (200, got.json())
    refused(call(caraway, "GET", f"/{query_id}/results"), 410)
    refused(call(caraway, "GET", f"/{query_id}/results/chunks/0"), 410)


@pytest.mark.parametrize("path", ["", "/status", "/results", "/results/chunks/0"])
def test_unknown_and_of_another_principal(caraway: Child, path: str) -> None:
    query_id = submit(caraway, NUMBERS)
    ended(caraway, query_id)
    unknown = call(caraway, "GET", f"/01A1F-E3A-3B6-0{path}")
    theirs = call(caraway, "GET", f"/{query_id}{path}", "bob")
    for got in (unknown, theirs):
        refused(got, 404)
    assert theirs.json()["error"] == unknown.json()["error"].replace("01A1F-E3A-3B6-0", query_id)
    refused(call(caraway, "POST", f"/{query_id}/cancel", "bob"), 404)


def test_unknown_chunk_and_no_rows(caraway: Child) -> None:
    query_id = submit(caraway, "SELECT 1 AS a WHERE false")
    ended(caraway, query_id)
    refused(call(caraway, "GET", f"/{query_id}/results/chunks/1"), 404)
    refused(call(caraway, "GET", f"/{query_id}/results?partition=1"), 404)
    got = call(caraway, "GET", f"/{query_id}/results/chunks/0")
    assert (got.status_code, got.json()["data_array"]) == (200, [])


def test_maximum_size_and_timeout(caraway: Child) -> None:
    large = ended(caraway, submit(caraway, NUMBERS, maximum_size=1000))
    assert large["error"]["error_code"] == "EXECUTION_FAILED"
    assert "maximum_size" in large["error"]["message"]
    late = ended(caraway, submit(caraway, ENDLESS, timeout_seconds=1))
    assert late["error"]["error_code"] == "TIMEOUT"


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"sql": "  "}', "application/json", 400),
        (b'{"sql": "SELECT 1"}', "text/plain", 415),
        (b"{}", "application/json", 422),
        (b'{"sql": 1}', "application/json", 422),
        (b'{"sql": "SELECT $1", "parameters": 7}', "application/json", 422),
        (b'{"sql": "SELECT 1", "timeout_seconds": -1}', "application/json", 422),
        (b'{"sql": "SELECT 1", "maximum_size": "big"}', "application/json", 422),
    ],
)
def test_bad_submissions(caraway: Child, body: bytes, content_type: str, status: int) -> None:
    headers = {"content-type": content_type}
    refused(call(caraway, "POST", "", content=body, headers=headers), status)


def test_bad_parameters_of_the_rest(caraway: Child) -> None:
    query_id = submit(caraway, "SELECT $1 AS a", parameters=[])
    assert ended(caraway, query_id)["error"]["error_code"] == "PARAMETER_BINDING_FAILED"
    refused(call(caraway, "GET", f"/{query_id}/status?wait=61"), 400, "wait")
    refused(call(caraway, "GET", f"/{query_id}/results?format=csv"), 400, "Accept")
    refused(call(caraway, "GET", f"/{query_id}/results/chunks/x"), 400)
    refused(call(caraway, "GET", "?limit=x"), 400)
    assert call(caraway, "GET", "", "nobody").status_code == 401


def test_key_that_only_reads_submits_and_cannot_cancel(caraway: Child) -> None:
    query_id = submit(caraway, "SELECT 1 AS a", "eve")
    assert ended(caraway, query_id, "eve")["status"] == "SUCCEEDED"
    refused(call(caraway, "POST", f"/{query_id}/cancel", "eve"), 403)
    assert [each["query_id"] for each in call(caraway, "GET", "", "eve").json()["queries"]] == [
        query_id
    ]


def test_idempotency_key(caraway: Child) -> None:
    headers = {"idempotency-key": "once"}
    ids = {
        call(caraway, "POST", "", json={"sql": NUMBERS}, headers=headers).json()["query_id"]
        for _ in range(3)
    }
    assert len(ids) == 1
    refused(call(caraway, "POST", "", json={"sql": "SELECT 2"}, headers=headers), 422)


def test_queue_is_bounded_and_interactive_queries_are_not(caraway: Child) -> None:
    jobs = [submit(caraway, ENDLESS, "bob") for _ in range(2)]

    def are_running() -> bool:
        return "query_jobs_running 2.0" in caraway.metrics.get("/metrics").text

    until(are_running, "two jobs run")
    jobs += [submit(caraway, ENDLESS, "bob") for _ in range(5)]
    got = call(caraway, "POST", "", "bob", json={"sql": ENDLESS})
    refused(got, 429, "max_queued")
    assert int(got.headers["retry-after"]) > 0
    got = caraway.api.post("/v1/sql", content="SELECT 1 AS a", headers={"x-api-key": "eve"})
    assert got.json() == [{"a": 1}]

    def are_counted() -> bool:
        page = caraway.metrics.get("/metrics").text
        return "scheduler_job_queue_depth 5.0" in page and "query_jobs_running 2.0" in page

    until(are_counted, "two jobs run and five wait")
    for query_id in jobs:
        assert call(caraway, "POST", f"/{query_id}/cancel", "bob").status_code == 200


def test_damaged_chunk(caraway: Child) -> None:
    query_id = submit(caraway, NUMBERS)
    ended(caraway, query_id)
    (folder,) = (caraway.log.parent / "data" / "results" / "jobs").glob(f"{query_id}.*")
    for chunk in folder.iterdir():
        chunk.write_bytes(chunk.read_bytes()[:-8] + b"damaged!")
    got = call(caraway, "GET", f"/{query_id}/results")
    refused(got, 500, "damaged")
    assert got.json()["status"] == "SUCCEEDED"


@pytest.mark.full  # In one process, tests/gateway/api/test_object_store.py shows the same.
def test_expired(tmp_path: Path) -> None:
    text = MANIFEST.replace("max_queued: 10", "max_queued: 10, retention: 1s")
    with child(tmp_path, manifest(tmp_path, text)) as caraway:
        query_id = submit(caraway, NUMBERS)
        ended(caraway, query_id)

        def is_closed() -> bool:
            return bool(call(caraway, "GET", f"/{query_id}/status").json()["status"] == "CLOSED")

        until(is_closed, "the answer expires")
        refused(call(caraway, "GET", f"/{query_id}/results"), 410)
        refused(call(caraway, "GET", f"/{query_id}/results/chunks/0"), 410)
        assert call(caraway, "GET", "").json()["queries"] == []
        until(lambda: not list((tmp_path / "data" / "results" / "jobs").glob(f"{query_id}.*")),
              "its chunks are removed")  # fmt: skip


def test_job_waits_while_the_disk_is_full_and_says_so(tmp_path: Path) -> None:
    with child(tmp_path, manifest(tmp_path)) as caraway:
        with caraway.small_files(1_000_000):
            large = submit(caraway, "SELECT value AS n FROM generate_series(1, 3000000)")

            def waits() -> bool:
                told = call(caraway, "GET", f"/{large}/status").json()
                return "free or add space" in told.get("waits_for", "")

            until(waits, "the job says what it waits for")
            assert ended(caraway, submit(caraway, "SELECT 1 AS a"))["status"] == "SUCCEEDED"
        assert ended(caraway, large)["status"] == "SUCCEEDED"


def test_killed_and_started_again_every_job_is_finished(tmp_path: Path) -> None:
    path = manifest(tmp_path)
    with child(tmp_path, path) as caraway:
        endless = submit(caraway, ENDLESS)
        jobs = [submit(caraway, NUMBERS, key) for key in ("ada", "bob") for _ in range(3)]
        caraway.signal(signal.SIGKILL)
        caraway.wait()
    with child(tmp_path, path) as caraway:
        for query_id, key in zip(jobs, ("ada",) * 3 + ("bob",) * 3, strict=True):
            assert ended(caraway, query_id, key)["status"] == "SUCCEEDED"
            told = call(caraway, "GET", f"/{query_id}", key).json()
            assert told["manifest"]["total_row_count"] == ROWS
        until(lambda: call(caraway, "GET", f"/{endless}/status").json()["status"] == "RUNNING",
              "the other job runs again")  # fmt: skip
        assert call(caraway, "POST", f"/{endless}/cancel").json()["status"] == "CANCELLED"


def test_stopped_and_started_again_a_job_continues(tmp_path: Path) -> None:
    path = manifest(tmp_path, MANIFEST + "  shutdown_timeout: 1s\n")
    with child(tmp_path, path) as caraway:
        endless = submit(caraway, ENDLESS)
        until(lambda: call(caraway, "GET", f"/{endless}/status").json()["status"] == "RUNNING",
              "the job runs")  # fmt: skip
        caraway.signal(signal.SIGTERM)
        assert caraway.wait() == 0
    with child(tmp_path, path) as caraway:
        until(lambda: call(caraway, "GET", f"/{endless}/status").json()["status"] == "RUNNING",
              "the job runs again")  # fmt: skip
        assert call(caraway, "POST", f"/{endless}/cancel").json()["status"] == "CANCELLED"
