"""The OpenAPI description is correct, complete, and tested with generated requests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from caraway_gateway.composition import app
from tests.kit.processes import child
from tests.kit.runtime import running

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "http-api.md"
UNLIMITED = ("/health", "/v1/ready")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MANIFEST = """
    runtime:
      query: {timeout: 20s}
    datasets:
      - {from: 'file:people.csv', name: people}
"""


def write(folder: Path) -> Path:
    (folder / "people.csv").write_text("id,name\n1,Ann\n")
    path = folder / "caraway.yaml"
    path.write_text(
        "version: v1\nkind: Caraway\nname: api\nruntime: {query: {timeout: 20s}}\n"
        "datasets: [{from: 'file:people.csv', name: people}]\n"
    )
    return path


async def test_description_has_the_version_the_licence_and_every_route(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    async with running(tmp_path, MANIFEST) as runtime:
        document = (await runtime.api.get("/openapi.json")).json()
        assert document["openapi"].startswith("3.1")
        assert document["info"]["version"] == "2.0.0-unstable"
        assert document["info"]["license"]["identifier"] == "Apache-2.0"
        assert set(document["paths"]) == {
            "/health", "/v1/ready", "/v1/sql", "/v1/sql/active", "/v1/sql/{query_id}/cancel",
            "/v1/sql/{query_id}/stages", "/v1/datasets/{name}/details", "/v1/verdicts",
            "/v1/datasets", "/v1/catalogs", "/v1/models", "/v1/models/{name}", "/v1/workers",
            "/v1/functions", "/v1/chat/completions", "/v1/responses", "/v1/messages",
            "/v1/responses/{response_id}", "/v1/embeddings", "/v1/pods",
            "/v1/spicepods", "/v1/status",
            "/v1/cluster/executors", "/v1/cluster/recent",
            "/v1/queries", "/v1/queries/{query_id}", "/v1/queries/{query_id}/status",
            "/v1/queries/{query_id}/results", "/v1/queries/{query_id}/results/chunks/{index}",
            "/v1/queries/{query_id}/cancel", "/v1/datasets/{name}/acceleration",
            "/v1/datasets/{name}/acceleration/refresh", "/v1/datasets/{name}/cdc",
            "/v1/datasets/{name}/acceleration/snapshots",
            "/v1/datasets/{name}/acceleration/snapshots/{snapshot_id}",
            "/v1/datasets/{name}/acceleration/snapshots/current",
            "/v1/search", "/v1/mcp",
            "/v1/tools", "/v1/tools/search", "/v1/tools/{name}", "/v1/tool/{name}",
            "/v1/nsql", "/v1/nsql/context", "/v1/packages/generate",
            "/v1/config", "/v1/namespaces", "/v1/namespaces/{namespace}",
            "/v1/namespaces/{namespace}/tables", "/v1/namespaces/{namespace}/tables/{table}",
            "/v1/{prefix}/namespaces", "/v1/{prefix}/namespaces/{namespace}",
            "/v1/{prefix}/namespaces/{namespace}/tables",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan_id}",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
            "/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
            "/v1/{prefix}/namespaces/{namespace}/views",
            "/v1/{prefix}/namespaces/{namespace}/views/{view}",
        }  # fmt: skip
        sql = document["paths"]["/v1/sql"]["post"]
        assert set(sql["responses"]) == {
            "200", "400", "403", "406", "408", "413", "415", "429", "499", "500", "503",
            "504", "507",
        }  # fmt: skip
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                # Only a submission can be well formed and still be invalid.
                is_submission = (method, path) == ("post", "/v1/queries")
                assert ("422" in operation["responses"]) == is_submission
                assert ("429" in operation["responses"]) == (path not in UNLIMITED)
                for answer in operation["responses"].values():
                    assert answer["description"]
                    assert "X-Trace-Id" in answer["headers"]
        listing = document["paths"]["/v1/catalogs"]["get"]["responses"]
        assert list(listing["400"]["content"]) == ["application/json"]
        assert "Results-Cache-Status" in sql["responses"]["200"]["headers"]
        for status in ("429", "503"):
            assert "Retry-After" in sql["responses"][status]["headers"]
        change = document["paths"]["/v1/datasets/{name}/acceleration"]["patch"]
        body = change["requestBody"]["content"]["application/json"]["schema"]
        assert body["properties"]["refresh_sql"]["type"] == ["string", "null"]


@pytest.mark.parametrize("manifest", ["", "runtime: {auth: {api-key: {keys: ['k']}}}\n"])
async def test_every_reference_resolves(tmp_path: Path, manifest: str) -> None:
    async with running(tmp_path, manifest) as runtime:
        document = (await runtime.api.get("/openapi.json")).json()
    references = list(_references(document))
    assert "#/components/schemas/ComponentError" in references
    for reference in references:
        found = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
    names = [
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))


def _references(value: Any) -> Iterator[str]:
    match value:
        case dict():
            if isinstance(reference := value.get("$ref"), str):
                yield reference
            for each in value.values():
                yield from _references(each)
        case list():
            for each in value:
                yield from _references(each)


async def test_keys_are_described_where_they_are_asked_for(tmp_path: Path) -> None:
    manifest = "runtime: {auth: {api-key: {keys: ['k']}}}\n"
    async with running(tmp_path, manifest) as runtime:
        document = (await runtime.api.get("/openapi.json")).json()
        assert "401" in document["paths"]["/v1/sql"]["post"]["responses"]
        assert document["paths"]["/health"]["get"]["security"] == []
        assert document["security"] == [{"ApiKey": []}, {"Bearer": []}]
        assert set(document["components"]["securitySchemes"]) == {"ApiKey", "Bearer"}


async def test_page_needs_no_other_host(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        page = await runtime.api.get("/docs")
        assert page.status_code == 200
        assert "https://" not in page.text and "url: 'openapi.json'" in page.text
        for asset in ("swagger-ui-bundle.js", "swagger-ui.css"):
            # A proxy may serve the runtime below a prefix.
            assert f'"docs/assets/{asset}"' in page.text
            assert (await runtime.api.get(f"/docs/assets/{asset}")).status_code == 200


@pytest.mark.parametrize("path", sorted({route.path for r in app.ROUTERS for route in r.routes}))  # type: ignore[attr-defined]
def test_every_route_is_in_the_reference(path: str) -> None:
    assert path.replace(":path", "") in DOCS.read_text()


@pytest.mark.parametrize("examples", [5, pytest.param(60, marks=pytest.mark.full)])
def test_generated_requests_get_what_the_description_promises(
    tmp_path: Path, examples: int
) -> None:
    with child(tmp_path, write(tmp_path)) as caraway:
        base = f"http://{caraway.addresses['http']}"
        schema = schemathesis.openapi.from_url(f"{base}/openapi.json")

        operations = 0
        for result in schema.get_all_operations():
            conformance(result.ok(), examples)()
            operations += 1
        assert operations == 72
        assert caraway.sql("SELECT 1 AS x").json() == [{"x": 1}]
        assert "Traceback" not in caraway.logged()


def conformance(operation: Any, examples: int) -> Callable[[], None]:
    """Return a test of one operation with generated requests, the same ones each time."""

    @given(case=operation.as_strategy())
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    def conforms(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=60)

    return conforms
