"""Every row of the error table of `/v1/queries`."""

from pathlib import Path
from typing import Any

import pytest

from caraway_core import errors
from caraway_core.errors import outcomes
from tests.gateway.api.queries.serving import KEYS, SCHEMA, Serving, rows, serving

RESULTS, CHUNK = "/results", "/results/chunks/0"


async def refused(server: Serving, tail: str, status: int, **headers: str) -> dict[str, Any]:
    """Return the body of an error, which is JSON."""
    response = await server.get(tail, **headers)
    assert response.status_code == status, response.text
    document = response.json()
    assert isinstance(document["error"], str)
    assert document["error"]
    return dict(document)


@pytest.mark.parametrize(("tail", "status"), [(RESULTS, 425), (CHUNK, 409)])
async def test_a_query_under_way(server: Serving, tail: str, status: int) -> None:
    job = await server.submit()
    for state in ("PENDING", "RUNNING"):
        document = await refused(server, f"/{job.job_id}{tail}", status)
        assert "wait=SECONDS" in document["error"]
        assert document.get("status") == (state if tail == RESULTS else None)
        server.service.run(job)


@pytest.mark.parametrize("tail", [RESULTS, CHUNK])
async def test_a_failed_query(server: Serving, tail: str) -> None:
    job = server.service.fail(await server.submit(), "EXECUTION_FAILED", "divided by zero")
    document = await refused(server, f"/{job.job_id}{tail}", 500)
    assert document["error"] == "divided by zero"
    assert document.get("status") == ("FAILED" if tail == RESULTS else None)


@pytest.mark.parametrize("tail", [RESULTS, CHUNK])
async def test_a_cancelled_query(server: Serving, tail: str) -> None:
    job = await server.submit()
    await server.post(f"/{job.job_id}/cancel")
    document = await refused(server, f"/{job.job_id}{tail}", 410)
    assert document.get("status") == ("CANCELLED" if tail == RESULTS else None)


@pytest.mark.parametrize("tail", [RESULTS, CHUNK])
@pytest.mark.parametrize("how", ["expire", "sweep"])
async def test_an_expired_query(server: Serving, tail: str, how: str) -> None:
    job = await server.succeeded(rows(0, 1))
    getattr(server.service, how)(job)
    document = await refused(server, f"/{job.job_id}{tail}", 410)
    assert "expired" in document["error"]
    assert document.get("status") == ("CLOSED" if tail == RESULTS else None)
    described = (await server.get(f"/{job.job_id}")).json()
    assert described["status"] == "CLOSED"
    assert "result" not in described


@pytest.mark.parametrize("job_id", ["01ABC-DEF-456-789", "%20", "x" * 200])
async def test_an_unknown_query(server: Serving, job_id: str) -> None:
    for tail in ("", "/status", "/status?wait=1", RESULTS, CHUNK):
        document = await refused(server, f"/{job_id}{tail}", 404)
        assert "no query" in document["error"], tail
    assert (await server.post(f"/{job_id}/cancel")).status_code == 404


async def test_a_query_of_another_principal_is_unknown(tmp_path: Path) -> None:
    async with serving(tmp_path, KEYS) as server:
        job = await server.submit(**{"x-api-key": "reader"})
        server.service.succeed(job, SCHEMA, rows(0, 1))
        for tail in ("", "/status", RESULTS, CHUNK):
            await refused(server, f"/{job.job_id}{tail}", 404, **{"x-api-key": "writer"})
        cancelled = await server.post(f"/{job.job_id}/cancel", **{"x-api-key": "writer"})
        assert cancelled.status_code == 404
        listed = await server.get(**{"x-api-key": "writer"})
        assert listed.json() == {"queries": [], "total_count": 0}


async def test_an_unknown_chunk(server: Serving) -> None:
    job = await server.succeeded(rows(0, 1), rows(1, 1))
    for tail in ("/results?partition=2", "/results?partition=-1", "/results/chunks/2"):
        document = await refused(server, f"/{job.job_id}{tail}", 404)
        assert "its chunks are 0 to 1" in document["error"], tail


@pytest.mark.parametrize("tail", ["", RESULTS, CHUNK])
async def test_a_damaged_answer(server: Serving, tail: str) -> None:
    job = await server.succeeded(rows(0, 1))
    server.service.damaged_from = 0
    document = await refused(server, f"/{job.job_id}{tail}", 500)
    assert "chunk 0" in document["error"]


async def test_a_wrong_parameter(server: Serving) -> None:
    wrong = [
        ("/status?wait=61", "wait"),
        ("/status?wait=-1", "wait"),
        ("/status?wait=nan", "wait"),
        ("/status?wait=soon", "wait"),
        ("/results?format=csv", "Accept"),
        ("/results/chunks/0?format=arrow", "Accept"),
        ("/results?partition=x", "partition"),
        ("/results/chunks/x", "index"),
    ]
    job = await server.succeeded(rows(0, 1))
    for tail, says in wrong:
        assert says in (await refused(server, f"/{job.job_id}{tail}", 400))["error"], tail
    for tail in ("?limit=x", "?limit=-1", "?limit=100000"):
        assert "limit" in (await refused(server, tail, 400))["error"], tail


@pytest.mark.parametrize(
    ("failure", "status", "retry_after"),
    [
        (errors.OverloadedError("as many wait as may", 7), 429, "7"),
        (errors.StateAwayError("the state store is away", 3), 503, "3"),
        (errors.ShuttingDownError("Runtime is shutting down"), 503, "2"),
        (errors.ExecutionError("broken"), 500, None),
    ],
)
async def test_errors_of_the_job_service(
    server: Serving, failure: errors.CarawayError, status: int, retry_after: str | None
) -> None:
    server.service.failure = failure
    for response in (
        await server.post(json={"sql": "SELECT 1"}),
        await server.get(),
        await server.get("/1"),
        await server.get("/1/status"),
        await server.get("/1/results"),
        await server.post("/1/cancel"),
    ):
        assert response.status_code == status
        assert response.json() == {"error": outcomes.words(failure)}
        assert response.headers.get("retry-after") == retry_after


async def test_a_wrong_method_is_json_too(server: Serving) -> None:
    response = await server.api.delete("/v1/queries/1")
    assert response.status_code == 405
    assert "use GET" in response.json()["error"]


async def test_a_body_that_is_too_large(tmp_path: Path) -> None:
    manifest = "runtime: {http: {max_body_size: 2KiB}}\n"
    async with serving(tmp_path, manifest) as server:

        async def pieces() -> Any:
            for _ in range(3):
                yield b" " * 1024

        response = await server.api.post("/v1/queries", content=pieces())
        assert response.status_code == 413
        assert "2048" in response.json()["error"]
