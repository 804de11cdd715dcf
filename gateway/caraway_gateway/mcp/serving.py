"""The MCP server of this runtime; the only module that imports the MCP library's server."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message

from caraway_ai import json_values
from caraway_ai.tools.protocol import ToolDefinition
from caraway_ai.tools.toolbox import Toolbox
from caraway_assist.tools.data import caller_of
from caraway_core.errors import CarawayError
from caraway_core.ids import PrincipalId
from caraway_gateway.mcp.sessions import MOST_SESSIONS
from caraway_serving import scopes
from caraway_serving.mcp_pings import answer_pings

logger = logging.getLogger(__name__)
MOST_BODY_BYTES = 32 * 1024 * 1024
_MOST_SESSIONS = 2 * MOST_SESSIONS
"""The endpoint ends sessions above the limit once it sees that they began."""
_IDLE_S = 30 * 60
_INSTRUCTIONS = (
    "The data of one company: list_datasets and table_schema say what there is, sql reads it "
    "(read-only, PostgreSQL dialect). Prefer one aggregating query to reading many rows."
)


class McpServing:
    """Serves the tools of a toolbox by MCP, as an ASGI application; `manager.run` must be on."""

    def __init__(self, toolbox: Toolbox, version: str) -> None:
        self._toolbox = toolbox
        server: Server[Any] = Server(
            "caraway",
            version=version,
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=_no_resources,
            on_list_resource_templates=_no_templates,
            on_list_prompts=_no_prompts,
            get_tool_input_schema=self._schema,
        )
        server.middleware.append(answer_pings)
        self.manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            max_request_body_size=MOST_BODY_BYTES,
            session_idle_timeout=_IDLE_S,
            max_sessions=_MOST_SESSIONS,
        )

    async def end(self, principal: PrincipalId, session_id: str) -> None:
        """End a session, as its client does."""
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": "/v1/mcp",
            "query_string": b"",
            "headers": [(b"mcp-session-id", session_id.encode("latin-1"))],
            "user": user_of(principal),
        }
        await self.manager.asgi_app(scope, _nothing_more, _unsent)

    async def _list(
        self,
        context: ServerRequestContext[object, object],
        params: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(map(_told, self._toolbox.definitions())))

    async def _call(
        self, context: ServerRequestContext[object, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        request = context.request
        assert request is not None
        caller = caller_of(scopes.principal(request), scopes.span(request))
        try:
            result = await self._toolbox.call(params.name, params.arguments or {}, caller)
        except CarawayError as exc:
            return types.CallToolResult(content=[_text(exc.message)], is_error=True)
        except Exception:
            # The library would send the words of the exception to the client.
            trace_id = caller.trace_id
            logger.exception("tool failed", extra={"tool": params.name, "trace_id": trace_id})
            told = f"internal error; the log has the cause under trace id {trace_id}"
            return types.CallToolResult(content=[_text(told)], is_error=True)
        text = json_values.dumped(result).decode()
        structured = json.loads(text) if isinstance(result, Mapping) else None
        return types.CallToolResult(content=[_text(text)], structured_content=structured)

    def _schema(self, name: str) -> Mapping[str, object] | None:
        tool = self._toolbox.tools.get(name)
        return None if tool is None else tool.parameters


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unsent(message: Message) -> None:
    """Take an answer that no client waits for."""


def user_of(principal: PrincipalId) -> AuthenticatedUser:
    """Return what ties a session to the key that began it."""
    return AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))


# Some clients list these before they list tools, whatever the server can do.
async def _no_resources(
    _context: ServerRequestContext[object, object], _params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def _no_templates(
    _context: ServerRequestContext[object, object], _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _no_prompts(
    _context: ServerRequestContext[object, object], _params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _told(tool: ToolDefinition) -> types.Tool:
    return types.Tool(
        name=tool.name, description=tool.description, input_schema=dict(tool.parameters)
    )
