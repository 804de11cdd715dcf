"""The routes `/v1/namespaces...`: what the specification says of names, statuses and errors."""

import pytest

from tests.kit.runtime import Running


async def test_catalogs_have_schemas_and_schemas_have_tables(runtime: Running) -> None:
    async def get(path: str) -> object:
        response = await runtime.api.get(f"/v1/{path}")
        assert response.status_code == 200
        return response.json()

    both = [{"parts": ["caraway", "public"]}, {"parts": ["caraway", "sales"]}]
    assert await get("namespaces") == {"namespaces": [{"parts": ["caraway"]}]}
    assert await get("namespaces?parent=") == {"namespaces": [{"parts": ["caraway"]}]}
    assert await get("namespaces?parent=caraway") == {"namespaces": both}
    assert await get("namespaces?parent=caraway%1Fpublic") == {"namespaces": []}
    assert await get("namespaces/caraway.sales") == {"namespaces": both[1:]}
    assert await get("namespaces/caraway/tables") == {"identifiers": []}
    sales = {"identifiers": [{"namespace": both[1], "name": "trips"}]}
    assert await get("namespaces/caraway%1Fsales/tables") == sales
    public = await runtime.api.get("/v1/namespaces/caraway%1Fpublic/tables")
    names = [each["name"] for each in public.json()["identifiers"]]
    assert names == ["broken", "dear", "lost", "mixed", "odd", "people", "quick", "spans", "trips"]


@pytest.mark.parametrize("name", ["a%1F%1Fb", "%1Fa", "a..b", "a%00b", "a%0Ab", "x" * 600])
async def test_namespaces_that_are_none_are_invalid(runtime: Running, name: str) -> None:
    for path in (f"namespaces/{name}", f"namespaces?parent={name}", f"namespaces/{name}/tables"):
        response = await runtime.api.get(f"/v1/{path}")
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, 400)
        assert error["type"] == "BadRequestException"
        assert "namespace is not valid" in error["message"]
    assert (await runtime.api.head(f"/v1/namespaces/{name}")).status_code == 400
    assert (await runtime.api.head(f"/v1/namespaces/{name}/tables/t")).status_code == 400


@pytest.mark.parametrize(
    "name", ["other", "caraway%1Fnone", "caraway.public.trips", "public", "caraway.runtime"]
)
async def test_namespaces_that_do_not_exist_are_said_so(runtime: Running, name: str) -> None:
    for path in (f"namespaces/{name}", f"namespaces?parent={name}", f"namespaces/{name}/tables"):
        response = await runtime.api.get(f"/v1/{path}")
        assert response.status_code == 404
        assert response.json()["error"]["type"] == "NoSuchNamespaceException"
    exists = await runtime.api.head(f"/v1/namespaces/{name}")
    assert (exists.status_code, exists.content) == (404, b"")


@pytest.mark.parametrize(
    "name", ["none", "trips.x", "TRIPS", "caraway%1Ftrips", '"trips"', "sales.trips", "%27"]
)
async def test_tables_that_do_not_exist_are_said_so(runtime: Running, name: str) -> None:
    response = await runtime.api.get(f"/v1/namespaces/caraway%1Fpublic/tables/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "NoSuchTableException"
    exists = await runtime.api.head(f"/v1/namespaces/caraway%1Fpublic/tables/{name}")
    assert (exists.status_code, exists.content) == (404, b"")
    nowhere = await runtime.api.get(f"/v1/namespaces/none/tables/{name}")
    assert nowhere.json()["error"]["type"] == "NoSuchTableException"


async def test_what_exists_is_said_without_a_body(runtime: Running) -> None:
    for path in ("caraway", "caraway%1Fsales", "caraway%1Fpublic/tables/people"):
        response = await runtime.api.head(f"/v1/namespaces/{path}")
        assert (response.status_code, response.content) == (200, b"")


async def test_tables_and_views_are_loaded(runtime: Running) -> None:
    for name in ("trips", "people", "dear"):
        response = await runtime.api.get(f"/v1/namespaces/caraway%1Fpublic/tables/{name}")
        assert response.status_code == 200
        metadata = response.json()["metadata"]
        assert metadata["format-version"] == 2
        assert metadata["properties"]["caraway.table"] == name


async def test_config_says_what_is_served(runtime: Running) -> None:
    response = await runtime.api.get("/v1/config?warehouse=caraway")
    document = response.json()
    assert document["overrides"] == {"prefix": "caraway", "namespace-separator": "%1F"}
    assert document["defaults"] == {}
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert {f"GET {table}", f"HEAD {table}", "GET /v1/{prefix}/namespaces"} < set(
        document["endpoints"]
    )
    described = (await runtime.api.get("/openapi.json")).json()["paths"]
    for each in document["endpoints"]:
        method, path = each.split(" ")
        assert method.lower() in described[path.replace("-id}", "_id}")]
    other = await runtime.api.get("/v1/config?warehouse=elsewhere")
    assert other.status_code == 404
    assert "there is no catalog 'elsewhere'" in other.json()["error"]["message"]
