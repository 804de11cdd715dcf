"""The routes of `/v1/mcp`, where MCP clients find the tools of the runtime."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from caraway_core.errors import CarawayError
from caraway_gateway.api import app_state
from caraway_gateway.mcp.endpoint import McpEndpoint
from caraway_gateway.services import Services
from caraway_serving import bodies, errors, origins, parsing, scopes, shapes
from caraway_serving.access import Principal
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["MCP"])
MOST_BODY_BYTES = 32 * 1024 * 1024
_SESSION = {
    "name": "Mcp-Session-Id",
    "in": "header",
    "required": False,
    "description": "The session, from the answer to `initialize`.",
    "schema": {"type": "string"},
}
_MESSAGE: dict[str, object] = {
    "parameters": [_SESSION],
    "requestBody": {
        "description": "A JSON-RPC message of MCP.",
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
}
_STREAM: dict[str, object] = {"text/event-stream": {"schema": {"type": "string"}}}
_ANY: dict[str, object] = {**shapes.ANY_JSON, **shapes.TEXT}


def _responses(success: Mapping[int, dict[str, object]]) -> dict[int | str, dict[str, object]]:
    told = {
        400: "The message is not JSON-RPC, or names no session.",
        401: "No valid key, or the runtime has none.",
        403: "The host name or the origin is not allowed.",
        404: "The session is unknown or has ended; begin a new one.",
        405: "The method is not one of MCP.",
        406: "The client accepts neither JSON nor events.",
        408: "The body arrives too slowly.",
        409: "The session has a stream already.",
        413: "The body has more than 32 MiB.",
        415: "The body has an unsupported encoding.",
        421: "The request is for another host.",
    }
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "content": _ANY} for status, text in told.items()
    }
    return {**found, **dict(success.items())}


@router.post(
    "/v1/mcp",
    operation_id="post_mcp",
    openapi_extra=_MESSAGE,
    responses=_responses(
        {
            200: {"description": "The answer.", "content": {**shapes.ANY_JSON, **_STREAM}},
            202: {"description": "A notification was taken."},
        }
    ),
)
@router.get(
    "/v1/mcp",
    operation_id="get_mcp",
    openapi_extra={"parameters": [_SESSION]},
    responses=_responses({200: {"description": "Messages of the server.", "content": _STREAM}}),
)
@router.delete(
    "/v1/mcp",
    operation_id="delete_mcp",
    openapi_extra={"parameters": [_SESSION]},
    status_code=204,
    responses=_responses({204: {"description": "The session has ended."}}),
)
async def handle(request: Request) -> Response:
    """Exchange messages of MCP."""
    services = app_state.services(request)
    try:
        _check(request, services)
        body = await bodies.read(request, min(MOST_BODY_BYTES, services.max_body_bytes))
        if body:
            # The library parses it on the event loop.
            await parsing.parsed(request, body, len, parsing.MOST_SQL_VALUES)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.as_message(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return _McpResponse(services.mcp, scopes.principal(request), body)


def _check(request: Request, services: Services) -> None:
    """Raise a refusal unless keys are configured, and the host and the origin are allowed."""
    if services.keyring is None:
        raise RefusedRequestError(
            401, "MCP needs keys: set runtime.auth.api-key.keys in the manifest"
        )
    host = request.headers.get("host")
    if not origins.is_host_allowed(host, services.mcp.hosts):
        raise RefusedRequestError(
            403, "the host is not allowed; add it to runtime.mcp.allowed_hosts in the manifest"
        )
    if not origins.is_origin_allowed(request.headers.get("origin"), services.mcp.origins):
        raise RefusedRequestError(
            403,
            "the origin is not allowed; add it to runtime.cors.allowed_origins in the manifest",
        )


class _McpResponse(Response):
    """Lets the MCP server answer by itself."""

    def __init__(self, endpoint: McpEndpoint, principal: Principal, body: bytes) -> None:
        self.status_code = 200
        self.background = None
        self._endpoint = endpoint
        self._principal = principal
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._endpoint.handle(self._principal, self._body, scope, receive, send)
        except CarawayError as exc:
            await JSONResponse({"message": exc.message}, 500)(scope, receive, send)
