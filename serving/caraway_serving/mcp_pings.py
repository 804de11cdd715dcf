"""The answers of MCP servers to pings. Needs the MCP library, which not all installations have."""

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError


async def answer_pings(
    ctx: ServerRequestContext[object, object], call_next: CallNext
) -> HandlerResult:
    """Answer `ping` in versions of the protocol that no longer have it: clients still send it."""
    try:
        return await call_next(ctx)
    except MCPError as exc:
        if ctx.method != "ping" or exc.code != types.METHOD_NOT_FOUND:
            raise
        return {"resultType": "complete"}
