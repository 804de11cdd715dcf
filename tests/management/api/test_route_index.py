"""Which route a request reaches, and what a route may take."""

import inspect
import json

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from caraway_management.api import app, route_index


def test_every_route_is_in_a_small_group() -> None:
    index = app.declare().router.middleware_stack
    assert isinstance(index, route_index.RouteIndex)
    sizes = [len(group.routes) for group in index._groups.values()]
    assert sum(sizes) == len(app.declare().routes) > 150
    assert max(sizes) <= 5


def test_no_dependency_takes_a_thread() -> None:
    """FastAPI calls a dependency that is not a coroutine function in a thread, for each request."""

    def walk(dependant: Dependant) -> list[str]:
        found = [] if inspect.iscoroutinefunction(dependant.call) else [str(dependant.call)]
        return found + [each for child in dependant.dependencies for each in walk(child)]

    routes = [each for each in app.declare().routes if isinstance(each, APIRoute)]
    assert [each for route in routes for each in walk(route.dependant)] == []


@pytest.fixture
def client() -> TestClient:
    inner, outer = APIRouter(tags=["inner"]), APIRouter(prefix="/v1")

    @inner.get("/{id}/parts/{part}", status_code=201)
    async def get_part(id: int, part: str) -> str:
        """Return a part."""
        return f"{id} {part}"

    @inner.put("/{id}/parts/{part}")
    async def put_part(id: int, part: str) -> str:
        return "put"

    @inner.get("/{id}/{other}")
    async def get_other(id: int, other: str) -> str:
        return other

    outer.include_router(inner, prefix="/a")
    outer.include_router(inner, prefix="/b")
    made = FastAPI()
    route_index.add_routes(made, outer)
    return TestClient(made, raise_server_exceptions=False, follow_redirects=False)


def test_routes_are_found_below_each_prefix_and_with_a_parameter_anywhere(
    client: TestClient,
) -> None:
    assert (client.get("/v1/a/1/parts/x").status_code, client.get("/v1/b/2/parts/y").json()) == (
        201,
        "2 y",
    )
    assert client.put("/v1/a/1/parts/x").json() == "put"
    assert client.get("/v1/a/1/free").json() == "free"
    assert client.get("/v1/a/1/parts").json() == "parts"


def test_what_no_route_has_is_answered_as_before(client: TestClient) -> None:
    assert client.get("/v1/c/1/parts/x").status_code == 404
    assert client.get("/").status_code == 404
    wrong = client.delete("/v1/a/1/parts/x")
    assert (wrong.status_code, wrong.headers["allow"]) in [(405, "GET"), (405, "PUT")]
    assert client.get("/v1/a/1/parts/x/").headers["location"].endswith("/v1/a/1/parts/x")
    assert client.get("/v1/a/%2F/parts/x").status_code == 404
    assert client.get("/v1/a/x/parts/x").status_code == 422


def test_the_description_has_each_route_once(client: TestClient) -> None:
    paths = json.loads(client.get("/openapi.json").text)["paths"]
    assert sorted(paths) == [
        f"/v1/{name}/{{id}}/{tail}" for name in "ab" for tail in ("parts/{part}", "{other}")
    ]
    got = paths["/v1/a/{id}/parts/{part}"]["get"]
    assert (got["tags"], got["description"]) == (["inner"], "Return a part.")
    assert list(got["responses"]) == ["201", "422"]
