"""Routes called directly answer as FastAPI's own do."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, FastAPI, HTTPException, Path, Request
from fastapi.routing import APIRoute
from starlette.responses import PlainTextResponse, Response

from caraway_serving import failures
from caraway_serving.failures import ErrorShapes
from caraway_serving.routes import DirectRoute


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
