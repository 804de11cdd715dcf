"""The tools of the manifest in force: what cannot be made is left out, the rest works."""

import asyncio
import os
import sys
from pathlib import Path

from caraway_core import manifest as manifests
from tests.kit.runtime import running

UPSTREAM = Path(__file__).parents[2] / "kit" / "mcp_upstream.py"
MANIFEST = f"""
    tools:
      - from: https://api.test/x
        name: keyless
        params: {{auth_token: '${{env:CARAWAY_NO_SUCH_KEY}}'}}
      - from: sql
        name: one
        sql: SELECT 1 AS one
        groups: [numbers]
      - {{from: 'mcp:/nowhere/command', name: gone}}
      - {{from: 'mcp:{sys.executable}', name: shop, params: {{mcp_args: '{UPSTREAM}'}}}}
"""


async def test_tools_follow_the_manifest(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        tools = runtime.services.tools
        async with asyncio.timeout(60):
            await tools.wait_settled()
        assert tools.statuses == {
            "keyless": "error", "one": "ready", "gone": "error", "shop": "ready",
        }  # fmt: skip
        readiness = await runtime.api.post("/v1/tools/get_readiness", json={})
        assert readiness.json()["tools"] == tools.statuses
        assert [tool.name for tool in tools.select("numbers").tools.values()] == ["one"]
        added = await runtime.api.post("/v1/tools/add__shop", json={"a": 1, "b": 2})
        assert added.json() in (3, {"result": 3})
        assert (await runtime.api.post("/v1/tools/keyless", json={})).status_code == 404

        (server,) = [each for each in tools.toolbox.sources if each.group == "shop"]
        path = tmp_path / "caraway.yaml"
        path.write_text(
            "version: v1\nname: test\ntools:\n"
            "  - {from: sql, name: two, sql: SELECT 2 AS two}\n"
            f"  - {{from: 'mcp:{sys.executable}', name: shop, "
            f"params: {{mcp_args: '{UPSTREAM}'}}}}\n"
        )
        changed = manifests.load(path)
        secrets = manifests.build_resolver(changed, os.environ)
        tools.apply(changed, secrets)
        # Its entry is the same, and so is its connection.
        assert server in tools.toolbox.sources
        assert tools.statuses == {"two": "ready", "shop": "ready"}
        assert (await runtime.api.post("/v1/tools/two", json={})).json() == [{"two": 2}]
        assert (await runtime.api.post("/v1/tools/one", json={})).status_code == 404

        path.write_text("version: v1\nname: test\n")
        tools.apply(manifests.load(path), secrets)
        assert tools.statuses == {}
        assert (await runtime.api.post("/v1/tools/add__shop", json={})).status_code == 404
