"""The MCP endpoint with the client of the MCP library, and with requests that no client sends."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import EmptyResult, PingRequest

from caraway_ai.tools.protocol import Arguments
from caraway_gateway.composition import app
from tests.gateway.api.mcp_requests import URL, text
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.tools import FakeTool, FixedTools, returning

MANIFEST = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "reader"]}}
        datasets:
          - from: memory:orders
            name: orders
            access: read_write
            columns: [{name: id, type: bigint}]
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "sql", "arguments": {"query": "SELECT count(*) AS n FROM orders"}},
}


@asynccontextmanager
async def started(folder: Path, manifest: str = MANIFEST) -> AsyncIterator[Running]:
    async with running(folder, manifest) as runtime:
        runtime.api.headers.update({"x-api-key": "writer", "host": "localhost:8090",
                                    "accept": "application/json, text/event-stream"})  # fmt: skip
        yield runtime


@asynccontextmanager
async def client(runtime: Running, key: str, mode: str) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(app.build_api(runtime.services))
    async with httpx2.AsyncClient(transport=transport, headers={"x-api-key": key}) as http:
        connection = streamable_http_client(URL, http_client=http)
        async with Client(connection, mode=mode) as connected:
            yield connected


async def post(runtime: Running, message: Any, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await runtime.api.post("/v1/mcp", json=message, headers=named)


async def session(runtime: Running) -> str:
    answer = await post(runtime, INITIALIZE)
    assert answer.status_code == 200
    found = str(answer.headers["mcp-session-id"])
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await post(runtime, ready, mcp_session_id=found)).status_code == 202
    return found


async def test_clients_of_both_eras_call_tools_with_the_rights_of_their_key(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        await runtime.sql("INSERT INTO orders VALUES (1), (2)", accept="*/*")
        toolbox = runtime.services.tools.toolbox
        proxied = FixedTools("shop", (returning("stock__shop", {"left": 3}),))
        toolbox.sources = [*toolbox.sources, proxied]
        for mode, version in (("legacy", "2025-11-25"), ("auto", "2026-07-28")):
            async with client(runtime, "reader", mode) as connected:
                assert connected.protocol_version == version
                tools = (await connected.list_tools()).tools
                listed = (await runtime.api.get("/v1/tools")).json()
                assert [tool.name for tool in tools] == [tool["name"] for tool in listed]
                assert tools[-1].name == "stock__shop"
                assert dict(tools[1].input_schema) == listed[1]["parameters"]
                rows = await connected.call_tool(
                    "sql", {"query": "SELECT sum(id) AS s FROM orders"}
                )
                assert (rows.is_error, json.loads(text(rows))) == (False, [{"s": 3}])
                found = await connected.call_tool("stock__shop", {})
                assert found.structured_content == {"left": 3}
                for name, arguments, told in (
                    ("sql", {"query": "DELETE FROM orders"}, "read-only"),
                    ("sql", {"query": "DROP TABLE orders"}, "not supported"),
                    ("sql", {}, "argument 'query' is missing"),
                    ("nope", {}, "no tool 'nope'"),
                ):
                    refused = await connected.call_tool(name, arguments)
                    assert refused.is_error and told in text(refused)
        mine = "SELECT count(*) AS n FROM runtime.task_history WHERE task LIKE 'tool_use::%'"
        seen = await runtime.sql(mine, accept="*/*", **{"x-api-key": "reader"})
        assert seen.json() == [{"n": 10}]
        assert (await runtime.sql(mine, accept="*/*")).json() == [{"n": 0}]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_clients_that_ping_and_list_what_there_is_none_of_are_answered(
    tmp_path: Path, mode: str
) -> None:
    async with started(tmp_path) as runtime, client(runtime, "reader", mode) as connected:
        await connected.session.send_request(PingRequest(), EmptyResult)
        assert (await connected.list_resources()).resources == []
        assert (await connected.list_resource_templates()).resource_templates == []
        assert (await connected.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="Method not found"):
            await connected.read_resource("file:///nothing")


async def test_a_tool_that_breaks_tells_no_more_than_where_the_cause_is(tmp_path: Path) -> None:
    async def breaks(arguments: Arguments) -> Any:
        if arguments:
            return {"big": 10**30}
        raise ZeroDivisionError("secret detail")

    async with started(tmp_path) as runtime:
        toolbox = runtime.services.tools.toolbox
        toolbox.sources = [FixedTools("shop", (FakeTool("breaks", breaks),))]
        named = {"mcp_session_id": await session(runtime)}
        call: dict[str, Any] = {**CALL, "params": {"name": "breaks", "arguments": {}}}
        result = (await post(runtime, call, **named)).json()["result"]
        assert result["isError"] is True
        assert "internal error; the log has the cause" in result["content"][0]["text"]
        call["params"]["arguments"] = {"x": 10**30}
        result = (await post(runtime, call, **named)).json()["result"]
        assert result["structuredContent"] == {"big": 10**30}


async def test_a_session_ends_and_is_unknown_then(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        found = await session(runtime)
        assert len(found) == 32
        answer = await post(runtime, CALL, mcp_session_id=found)
        assert answer.json()["result"]["content"][0]["text"] == '[{"n":0}]'
        stolen = await post(runtime, CALL, mcp_session_id=found, x_api_key="reader")
        assert stolen.status_code == 404
        named = {"mcp-session-id": found}
        ended = await runtime.api.delete("/v1/mcp", headers=named)
        assert (ended.status_code, ended.content) == (204, b"")
        for method in ("POST", "GET", "DELETE"):
            for header in (named, {"mcp-session-id": "0" * 32}):
                content = json.dumps(CALL) if method == "POST" else ""
                gone = await runtime.api.request(
                    method,
                    "/v1/mcp",
                    content=content,
                    headers={**header, "content-type": "application/json"},
                )
                assert (method, gone.status_code) == (method, 404)
        # As clients do after a 404.
        assert await session(runtime) != found


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("application/json", 200, "application/json"),
        ("application/json, text/event-stream", 200, "application/json"),
        ("*/*", 200, "application/json"),
        ("text/event-stream", 200, "text/event-stream"),
        ("text/html", 406, "application/json"),
    ],
)
async def test_accept_selects_the_form(tmp_path: Path, accept: str, status: int, kind: str) -> None:
    async with started(tmp_path) as runtime:
        answer = await post(runtime, INITIALIZE, accept=accept)
        assert (answer.status_code, answer.headers["content-type"]) == (status, kind)
        if kind == "text/event-stream":
            event, data, *rest = answer.text.split("\n")
            assert (event, rest) == ("event: message", ["", ""])
            assert json.loads(data.removeprefix("data: "))["id"] == 1


async def test_garbage_is_refused(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        known = {"mcp-session-id": await session(runtime), "content-type": "application/json"}
        for content, status in (
            (b"{", 400),
            (b"", 400),
            (b"[]", 400),
            (b"\xff\xfe", 400),
            (b"[" * 100_000, 400),
            (b'{"jsonrpc": "1.0"}', 400),
            (b'"text"', 400),
            (b"x" * (32 * 1024 * 1024 + 1), 413),
        ):
            answer = await runtime.api.post("/v1/mcp", content=content, headers=known)
            assert answer.status_code == status, (content[:20], answer.text[:200])
        unknown = {"jsonrpc": "2.0", "id": 3, "method": "tools/burn"}
        answer = await runtime.api.post("/v1/mcp", json=unknown, headers=known)
        assert answer.json()["error"]["code"] == -32601
        without = {**known, "mcp-session-id": ""}
        assert (await runtime.api.post("/v1/mcp", json=CALL, headers=without)).status_code in (
            400,
            404,
        )
        odd = {**known, "mcp-protocol-version": "1999-01-01"}
        assert (await runtime.api.post("/v1/mcp", json=CALL, headers=odd)).status_code == 400
        wrong = {**known, "content-type": "text/plain"}
        assert (await runtime.api.post("/v1/mcp", json=CALL, headers=wrong)).status_code == 400
        assert (await runtime.api.put("/v1/mcp", headers=known)).status_code == 405
        answer = await runtime.api.post("/v1/mcp", json=CALL, headers=known)
        assert answer.status_code == 200


async def test_hosts_origins_and_keys(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        for headers, status in (
            ({"host": "evil.test"}, 403),
            ({"origin": "https://evil.test"}, 403),
            ({"origin": "http://localhost:3000"}, 200),
            ({"x_api_key": "wrong"}, 401),
            ({"x_api_key": ""}, 401),
        ):
            answer = await post(runtime, INITIALIZE, **headers)
            assert (headers, answer.status_code) == (headers, status)


async def test_without_keys_nobody_may_use_it(tmp_path: Path) -> None:
    async with started(tmp_path, "datasets: []") as runtime:
        answer = await post(runtime, INITIALIZE)
        assert answer.status_code == 401
        assert "runtime.auth" in answer.json()["message"]


async def test_a_key_with_too_many_sessions_loses_its_oldest_and_nobody_else_does(
    tmp_path: Path,
) -> None:
    manifest = MANIFEST.replace("auth:", "quotas: {max_mcp_sessions: 2}\n          auth:")
    async with started(tmp_path, manifest) as runtime:
        runtime.api.headers["x-api-key"] = "reader"
        others = await session(runtime)
        runtime.api.headers["x-api-key"] = "writer"
        first, second = [await session(runtime) for _ in range(2)]
        assert (await post(runtime, CALL, mcp_session_id=first)).status_code == 200
        third = await session(runtime)

        async def status(key: str, of: str) -> int:
            return (await post(runtime, CALL, mcp_session_id=of, x_api_key=key)).status_code

        async def is_gone() -> bool:
            return await status("writer", second) == 404

        await eventually(is_gone, "the session that was used least recently has ended")
        assert [await status("writer", each) for each in (first, third)] == [200, 200]
        assert await status("reader", others) == 200
        quota = runtime.services.quotas["mcp_sessions"]
        assert (len(quota), quota.holders, quota.evictions) == (3, 2, 1)
        ended = await runtime.api.delete("/v1/mcp", headers={"mcp-session-id": third})
        assert (ended.status_code, len(quota)) == (204, 2)
        page = (await runtime.metrics.get("/metrics")).text
        assert 'quota_entries{table="mcp_sessions"} 2.0' in page
        assert 'quota_evictions_total{table="mcp_sessions"} 1.0' in page
