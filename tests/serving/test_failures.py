"""Errors that no route answers: each family of routes has its own shape."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Query
from starlette.responses import PlainTextResponse, Response

from caraway_core.errors.outcomes import FailureKind
from caraway_serving import errors, failures
from caraway_serving.errors import RefusedRequestError
from caraway_serving.failures import ErrorShapes

SHAPES = ErrorShapes(as_error=("/v1/queries", "/v1/x"), as_message=("/v1/datasets/",))
SECRET = "the password is 1234"


@asynccontextmanager
async def served(*, is_stopping: bool = False) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    failures.install(app, SHAPES, lambda: is_stopping)

    @app.get("/v1/queries")
    @app.get("/v1/datasets/a")
    @app.get("/plain")
    async def numbered(count: int = Query(ge=1)) -> Response:
        return PlainTextResponse(str(count))

    @app.post("/plain")
    @app.delete("/v1/queries")
    async def other() -> Response:
        return PlainTextResponse("done")

    @app.get("/v1/queries/broken")
    @app.get("/v1/datasets/broken")
    @app.get("/broken")
    async def broken() -> Response:
        raise RuntimeError(SECRET)

    @app.get("/v1/x/locked")
    async def locked() -> Response:
        raise HTTPException(423, "it is locked", {"retry-after": "3"})

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


def worded(path: str, response: httpx.Response) -> str:
    """Return the words of an error, in the shape that its route has."""
    if path.startswith(SHAPES.as_error):
        assert response.json().keys() == {"error"}
        return str(response.json()["error"])
    if path.startswith(SHAPES.as_message):
        assert response.json().keys() == {"message"}
        return str(response.json()["message"])
    assert response.headers["content-type"].startswith("text/plain")
    return response.text


FAMILIES = pytest.mark.parametrize("family", ["/v1/queries", "/v1/datasets/", "/plain", "/"])


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/datasets/a", "/plain"])
@pytest.mark.parametrize("count", ["", "x", "0", "1.5", "9" * 5_000])
async def test_wrong_parameter_is_400_that_names_it(path: str, count: str) -> None:
    async with served() as client:
        response = await client.get(path, params={"count": count})
        assert response.status_code == 400
        assert "query parameter 'count'" in worded(path, response)


@FAMILIES
async def test_unknown_route_is_404_and_says_where_routes_are_listed(family: str) -> None:
    path = family.rstrip("/") + "/nowhere/at/all"
    async with served() as client:
        response = await client.get(path)
        assert response.status_code == 404
        assert f"GET {path}" in worded(path, response)
        assert "/openapi.json" in worded(path, response)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/plain", "GET, POST"),
        ("POST", "/v1/queries", "DELETE, GET"),
        ("PATCH", "/v1/datasets/a", "GET"),
    ],
)
async def test_method_not_allowed_names_the_methods_of_all_routes_of_the_path(
    method: str, path: str, allowed: str
) -> None:
    async with served() as client:
        response = await client.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, allowed)
        assert f"use {allowed}" in worded(path, response)


@pytest.mark.parametrize("path", ["/v1/queries/broken", "/v1/datasets/broken", "/broken"])
async def test_fault_of_ours_is_500_without_its_insides(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "caraway_serving.failures"):
        async with served() as client:
            response = await client.get(path)
    assert response.status_code == 500
    assert SECRET not in response.text
    # The server closes the connection after it.
    assert response.headers["connection"] == "close"
    assert "trace id" in worded(path, response)
    (record,) = [each for each in caplog.records if each.name == "caraway_serving.failures"]
    assert record.exc_info is not None and SECRET in str(record.exc_info[1])


async def test_other_refusals_keep_status_words_and_headers() -> None:
    async with served() as client:
        response = await client.get("/v1/x/locked")
        assert (response.status_code, response.headers["retry-after"]) == (423, "3")
        assert response.json() == {"error": "it is locked"}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/queries", errors.as_error),
        ("/v1/queries/1/results", errors.as_error),
        ("/v1/datasets/a", errors.as_message),
        ("/v1/datasets", errors.as_text),
        ("/v1/sql", errors.as_text),
        ("/", errors.as_text),
        ("", errors.as_text),
        ("v1/queries", errors.as_text),
    ],
)
def test_prefix_of_the_path_decides_the_shape(path: str, answer: errors.Answer) -> None:
    assert SHAPES.answer_of(path) is answer


def test_without_prefixes_every_error_is_text() -> None:
    assert ErrorShapes().answer_of("/v1/queries") is errors.as_text


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/datasets/a", "/v1/sql"])
def test_refusal_keeps_its_status_and_headers_in_every_shape(path: str) -> None:
    refusal = RefusedRequestError(415, "not read", {"accept-encoding": "gzip"})
    response = SHAPES.answer(path, refusal)
    assert (response.status_code, response.headers["accept-encoding"]) == (415, "gzip")
    assert b"not read" in bytes(response.body)


def test_only_faults_of_the_server_are_statuses_of_the_server() -> None:
    ours = {kind for kind, status in errors.STATUS.items() if status >= 500}
    assert ours == {
        FailureKind.INTERNAL,
        FailureKind.UNAVAILABLE,
        FailureKind.TIMED_OUT,
        FailureKind.FULL,
    }


@pytest.mark.parametrize("path", ["/v1/queries/broken", "/v1/datasets/broken", "/broken"])
async def test_what_breaks_while_the_process_stops_may_be_sent_again(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(is_stopping=True) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert worded(path, answer) == "Runtime is shutting down"
    assert SECRET in caplog.text, "the cause is logged all the same"


def test_a_family_of_routes_may_have_a_format_of_its_own() -> None:
    shapes = ErrorShapes(
        others={"/v1/own": errors.as_error}, families={"/v1/own/": errors.as_message}
    )
    assert shapes.answer_of("/v1/own") is errors.as_error
    assert shapes.answer_of("/v1/own/x") is errors.as_message
    assert shapes.answer_of("/v1/owner") is errors.as_text
