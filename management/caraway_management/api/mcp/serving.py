"""The MCP server of the service; the only module that imports the MCP library."""

import json
from importlib import metadata
from typing import Any

import httpx
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import ASGIApp

from caraway_management.api import failures
from caraway_management.api.gates import MOST_BODY_BYTES
from caraway_management.api.mcp.definitions import RouteTool
from caraway_management.domain.refusals import RefusedError
from caraway_serving.mcp_pings import answer_pings

_INSTRUCTIONS = (
    "Manages organizations, projects, deployments, secrets and monitors of Caraway. Each tool is a "
    "route of the management API; its answer has the status and the body of that route."
)


def build_manager(app: ASGIApp, tools: dict[str, RouteTool]) -> StreamableHTTPSessionManager:
    """Build the server. It keeps no sessions, so any instance answers any request."""
    calls = _Calls(app, tools)
    server: Server[Any] = Server(
        "caraway-management",
        version=metadata.version("caraway"),
        instructions=_INSTRUCTIONS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
    )
    server.middleware.append(answer_pings)
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MOST_BODY_BYTES
    )


class _Calls:
    """Calls routes for tools, with the credential of the MCP request."""

    def __init__(self, app: ASGIApp, tools: dict[str, RouteTool]) -> None:
        self._app = app
        self._tools = tools

    async def list_tools(
        self,
        _context: ServerRequestContext[object, object],
        _params: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self._tools.values()])

    async def call_tool(
        self, context: ServerRequestContext[object, object], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool '{params.name}'")
        request = context.request
        assert isinstance(request, Request)
        try:
            call = tool.call(params.arguments or {})
        except RefusedError as exc:
            return _result(exc.status, failures.body_of(exc))
        peer = request.client
        transport = httpx.ASGITransport(
            self._app, client=(peer.host, peer.port) if peer else ("", 0)
        )
        # The arguments may be anything: the route reports their problems.
        headers = {name: value.encode() for name, value in call.headers.items()} | {
            "authorization": request.headers.get("authorization", "").encode("latin-1"),
            "x-request-id": getattr(request.state, "request_id", "").encode(),
        }
        content = None
        if call.body is not None:
            headers["content-type"] = b"application/json"
            content = json.dumps(call.body).encode()
        async with httpx.AsyncClient(transport=transport, base_url="http://management") as client:
            answer = await client.request(
                call.method, call.path, params=dict(call.query), headers=headers, content=content
            )
        return _result(answer.status_code, _body(answer))


def _result(status: int, body: object) -> types.CallToolResult:
    """Return the result of a call: the answer of its route."""
    result = {"status": status, "body": body}
    text = types.TextContent(type="text", text=json.dumps(result))
    return types.CallToolResult(content=[text], structured_content=result, is_error=status >= 400)


def _described(tool: RouteTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only, destructive_hint=tool.method == "DELETE"
        ),
    )


def _body(answer: httpx.Response) -> object:
    if answer.headers.get("content-type", "").startswith("application/json"):
        return answer.json()
    return answer.text or None
