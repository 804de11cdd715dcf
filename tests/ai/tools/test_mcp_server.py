"""Tools of an MCP server that runs as a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from caraway_ai.tools import mcp_http, mcp_server
from caraway_ai.tools.arguments import ToolArgumentsError
from caraway_ai.tools.mcp_server import McpConnection, McpServer
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ToolError
from caraway_core.manifest.values.declared_tools import DeclaredTool
from tests.kit.deadlines import eventually
from tests.kit.listening import listening

UPSTREAM = Path(__file__).parents[2] / "kit" / "mcp_upstream.py"
CALLER = ToolCaller()


def declared(target: str = sys.executable) -> DeclaredTool:
    return DeclaredTool("shop", "mcp", target)


@asynccontextmanager
async def serving(target: str, *args: str) -> AsyncIterator[McpServer]:
    connection = McpConnection(
        target, args, env={"GREETING": "hello", "TOKEN": "a-secret"}, timeout_s=60
    )
    server = McpServer(declared(target), connection)
    running = asyncio.ensure_future(server.run())
    try:
        async with asyncio.timeout(60):
            await server.wait_settled()
        yield server
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def test_its_tools_are_called_under_names_of_their_own() -> None:
    async with serving(sys.executable, str(UPSTREAM)) as server:
        assert server.status == "ready", server.error
        box = Toolbox()
        box.sources = [server]
        assert list(box.tools) == [
            "add__shop", "echo__shop", "strange_name___shop", "fails__shop", "dies__shop",
        ]  # fmt: skip
        assert box.tools["add__shop"].parameters["required"] == ["a", "b"]
        assert [tool.name for tool in box.chosen("shop")] == list(box.tools)
        assert await box.call("add__shop", {"a": 2, "b": 3}, CALLER) in (5, {"result": 5})
        assert await box.call("strange_name___shop", {}, CALLER) in ("hello", {"result": "hello"})
        with pytest.raises(ToolError, match="out of stock") as caught:
            await box.call("fails__shop", {}, CALLER)
        assert "a-secret" not in caught.value.message
        with pytest.raises(ToolArgumentsError, match="argument 'b' is missing"):
            await box.call("add__shop", {"a": 2}, CALLER)


async def test_a_server_that_ends_is_away_and_its_tools_with_it() -> None:
    async with serving(sys.executable, str(UPSTREAM)) as server:
        box = Toolbox()
        box.sources = [server]
        with pytest.raises(ToolError, match="the connection to the MCP server 'shop' failed"):
            await box.call("dies__shop", {}, CALLER)

        async def is_away() -> bool:
            return not server.tools()

        await eventually(is_away, "the tools of a server that ended are not listed")


async def test_a_server_that_ended_is_connected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "AGAIN", Delays(0.0, 0.0))
    async with serving(sys.executable, str(UPSTREAM)) as server:
        with pytest.raises(ToolError, match="failed"):
            await server.call("dies", {})

        async def is_back() -> bool:
            try:
                return await server.call("add", {"a": 2, "b": 3}) is not None
            except ToolError:
                return False

        await eventually(is_back, "the server is connected again")
        assert (server.status, server.error) == ("ready", "")


async def test_a_command_that_is_not_there() -> None:
    async with serving("/nowhere/command") as server:
        assert (server.status, server.error) == ("error", "its command was not found")
        assert server.tools() == ()
        with pytest.raises(ToolError, match="'shop' is away: its command was not found"):
            await server.call("add", {})


async def test_an_address_where_nobody_is() -> None:
    async with serving("http://127.0.0.1:1/mcp") as server:
        assert server.status == "error"
        assert server.error.startswith("it cannot be reached")


def test_params_become_headers_and_arguments() -> None:
    params = {"mcp_auth_token": "t", "mcp_headers": "X-A: b", "mcp_args": "-y 'a b'"}
    read = McpConnection.from_params(declared(), params, {})
    assert dict(read.headers) == {"x-a": "b", "authorization": "Bearer t"}
    assert read.args == ("-y", "a b")
    assert "Bearer" not in repr(read)
    with pytest.raises(ToolError, match="mcp_args cannot be read"):
        McpConnection.from_params(declared(), {"mcp_args": "'open"}, {})


async def test_a_command_that_speaks_no_mcp(caplog: pytest.LogCaptureFixture) -> None:
    says = "print('password=hunter2', flush=True); import sys; sys.stdin.read()"
    connection = McpConnection(sys.executable, ("-c", says), timeout_s=2)
    server = McpServer(declared(), connection)
    running = asyncio.ensure_future(server.run())
    async with asyncio.timeout(60):
        await server.wait_settled()
    running.cancel()
    await asyncio.wait((running,))
    assert server.error == "it does not answer in time, or not by MCP"
    assert "hunter2" not in caplog.text and "Traceback" not in caplog.text


async def test_an_address_that_answers_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "MOST_BYTES", 1000)

    async def answer(request: Request) -> Response:
        sent = await request.json()
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "padding": "x" * 2000}
        return JSONResponse({"jsonrpc": "2.0", "id": sent.get("id"), "result": result})

    async with listening(Starlette(routes=[Route("/mcp", answer, methods=["POST"])])) as at:
        async with serving(f"{at}/mcp") as server:
            assert server.status == "error"
            assert server.error == "it cannot be reached (RemoteProtocolError)"
