"""Routes called directly answer as FastAPI's own do."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated
from urllib.parse import urljoin

import httpx
import pytest
from fastapi import APIRouter, FastAPI, HTTPException, Path, Request
from fastapi.routing import APIRoute
from starlette.responses import PlainTextResponse, Response

from caraway_serving import failures
from caraway_serving.failures import ErrorShapes
from caraway_serving.routes import DirectRoute, redirect_slashes


@asynccontextmanager
async def served(kind: type[APIRoute]) -> AsyncIterator[httpx.AsyncClient]:
    router = APIRouter(route_class=kind)

    @router.post("/plain", summary="Told in the documentation")
    async def plain(request: Request) -> Response:
        return PlainTextResponse(b"%s %s" % (request.url.query.encode(), await request.body()))

    @router.get("/of/{name}")
    async def named(request: Request, name: Annotated[str, Path(max_length=3)]) -> Response:
        return PlainTextResponse(f"{request.method} {name}")

    @router.get("/fails")
    async def fails(request: Request) -> Response:
        raise ValueError("secret")

    @router.get("/refuses")
    async def refuses(request: Request) -> Response:
        raise HTTPException(418, "no")

    app = FastAPI()
    failures.install(app, ErrorShapes())
    app.state.routes = list(router.routes)
    app.router.routes.extend(router.routes)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/plain?a=1"),
        ("GET", "/plain"),
        ("DELETE", "/plain"),
        ("OPTIONS", "/plain"),
        ("POST", "/plain/"),
        ("GET", "/of/abc"),
        ("GET", "/of/abcd"),
        ("HEAD", "/of/abc"),
        ("GET", "/fails"),
        ("GET", "/refuses"),
        ("GET", "/openapi.json"),
    ],
)
async def test_answers_are_those_of_other_routes(method: str, path: str) -> None:
    answers = []
    for kind in (APIRoute, DirectRoute):
        async with served(kind) as client:
            answer = await client.request(method, path, content=b"body")
            text = re.sub("[0-9a-f]{32}", "TRACE", answer.text)
            answers.append((answer.status_code, dict(answer.headers), text))
    assert answers[0] == answers[1]


async def test_endpoints_that_take_only_the_request_are_called_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def injected(*_: object) -> None:
        raise AssertionError("FastAPI's own way")

    monkeypatch.setattr(APIRoute, "handle", injected)
    async with served(DirectRoute) as client:
        assert (await client.post("/plain?q", content=b"b")).text == "q b"
        assert (await client.get("/of/a")).status_code == 500


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        ("/v1/of/a%20b/", "/v1/of/a%20b"),
        ("/v1/of/a/?x=1&y=%2F", "/v1/of/a?x=1&y=%2F"),
        ("/plain/", "/plain"),
        ("/none/", None),
        ("/plain//", None),
        ("/", None),
    ],
)
async def test_a_slash_at_the_end_leads_to_the_route_by_a_relative_address(
    asked: str, address: str | None
) -> None:
    app = FastAPI()

    @app.get("/v1/of/{name}")
    @app.get("/plain")
    async def answer() -> None:
        """Answer nothing."""

    redirect_slashes(app.router)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        got = await client.get(asked, headers={"host": "evil.example"})
    if address is None:
        assert got.status_code == 404
        return
    location = got.headers["location"]
    assert got.status_code == 307 and location.startswith("../") and "evil" not in location
    # A proxy may serve the router below a prefix.
    assert urljoin(f"https://host/data{asked}", location) == f"https://host/data{address}"
