"""The console at the port of the API, and the description that its types are made from."""

import json
import os
import re
from pathlib import Path
from typing import Any

from tests.kit.runtime import running

PATHS = (
    "/v1/cluster/executors",
    "/v1/cluster/recent",
    "/v1/datasets",
    "/v1/datasets/{name}/details",
    "/v1/queries",
    "/v1/search",
    "/v1/sql/active",
    "/v1/sql/{query_id}/stages",
    "/v1/tools",
)
STORED = Path(__file__).parents[3] / "console" / "src" / "api" / "openapi.json"


def used(description: dict[str, Any]) -> dict[str, Any]:
    """Return what the console uses of a description: its paths, and the schemas of those."""
    paths = {
        path: {
            method: {**operation, "responses": {"200": operation["responses"].get("200", {})}}
            for method, operation in description["paths"][path].items()
        }
        for path in PATHS
    }
    schemas: dict[str, Any] = {}
    wanted = names_in(paths)
    while wanted:
        name = wanted.pop()
        schemas[name] = description["components"]["schemas"][name]
        wanted |= names_in(schemas[name]) - schemas.keys()
    found = {key: description[key] for key in ("openapi", "info")}
    return {**found, "paths": paths, "components": {"schemas": schemas}}


def names_in(value: object) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(value)))


async def test_the_types_of_the_console_are_those_of_the_api(tmp_path: Path) -> None:
    """`CARAWAY_WRITE_DOCS=1` writes the description."""
    async with running(tmp_path, "datasets: []") as runtime:
        described = used((await runtime.api.get("/openapi.json")).json())
    text = json.dumps(described, indent=1, sort_keys=True) + "\n"
    if os.environ.get("CARAWAY_WRITE_DOCS"):
        STORED.write_text(text)
    assert STORED.read_text() == text, "run this test with CARAWAY_WRITE_DOCS=1"


async def test_the_page_needs_no_key_and_the_api_does(tmp_path: Path) -> None:
    manifest = "runtime: {auth: {api-key: {enabled: true, keys: ['secret']}}}\ndatasets: []"
    async with running(tmp_path, manifest) as runtime:
        page = await runtime.api.get("/")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert (await runtime.api.get("/v1/datasets")).status_code == 401


async def test_a_manifest_can_leave_the_console_out(tmp_path: Path) -> None:
    manifest = "runtime: {console: {enabled: false}}\ndatasets: []"
    async with running(tmp_path, manifest) as runtime:
        assert (await runtime.api.get("/")).status_code == 404
        assert (await runtime.api.get("/console/index.js")).status_code == 404
