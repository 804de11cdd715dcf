"""The routes of `/v1/tools`, which list, find and call tools."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response

from caraway_ai import json_values
from caraway_ai.tools import arguments as arguments_
from caraway_ai.tools.toolbox import MOST_LISTED
from caraway_assist.tools.data import caller_of
from caraway_core.errors import CarawayError, InvalidRequestError, NotFoundError
from caraway_gateway.api import app_state
from caraway_gateway.services import Services
from caraway_serving import bodies, errors, parsing, scopes, shapes, streaming
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Tools"])
Name = Annotated[str, Path(description="The name of a tool, from `GET /v1/tools`.")]


class ToolListElement(BaseModel):
    """A tool; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any] | None


_BODY: dict[str, object] = {
    "requestBody": {
        "description": "The arguments, as the `parameters` of the tool describe them.",
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
_CALL: dict[str, Any] = {
    "openapi_extra": _BODY,
    "responses": {
        200: {"description": "The result of the tool.", "content": shapes.ANY_JSON},
        404: {"description": "No such tool.", "content": {**shapes.TEXT, **shapes.MESSAGE}},
        **{
            status: {"description": told, "content": shapes.MESSAGE}
            for status, told in (
                (400, "The arguments do not match the parameters of the tool."),
                (403, "The tool asked for what the caller may not do."),
                (408, "The body arrives too slowly."),
                (413, "The body is too large."),
                (415, "The body has an unsupported encoding."),
                (499, "The work of the tool was cancelled."),
                (500, "The tool failed."),
                (504, "The tool took too long."),
                (507, "A disk is full."),
            )
        },
    },
}


@router.get("/v1/tools", response_model=list[ToolListElement])
async def list_tools(request: Request) -> Response:
    """List the tools that models and MCP clients can call."""
    definitions = app_state.services(request).tools.toolbox.definitions()
    return _json(
        [
            {"name": each.name, "description": each.description, "parameters": each.parameters}
            for each in definitions
        ]
    )


@router.get(
    "/v1/tools/search",
    responses={200: {"description": "The best tools.", "content": shapes.ANY_JSON}},
)
async def search_tools(
    request: Request,
    query: Annotated[str, Query(min_length=1, description="What the tool should do.")],
    keywords: Annotated[
        list[str] | None, Query(description="Words that the name or description contains.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED, description="The most tools.")] = 5,
    min_score: Annotated[float, Query(ge=0, le=1, description="The least score.")] = 0.0,
) -> Response:
    """Find tools by what they do, as the tool `tool_search` does for models."""
    services = app_state.services(request)
    asked = {"query": query, "keywords": keywords or [], "limit": limit, "min_score": min_score}
    selection = services.tools.select("search_registry")
    caller = caller_of(scopes.principal(request), scopes.span(request))
    try:
        return _json(await selection.call("tool_search", asked, caller))
    except CarawayError as exc:
        return errors.as_message(exc)


@router.post("/v1/tools/{name:path}", operation_id="call_tool", **_CALL)
@router.post("/v1/tool/{name:path}", operation_id="call_tool_alias", deprecated=True, **_CALL)
async def call_tool(request: Request, name: Name) -> Response:
    """Call a tool with the rights of the caller."""
    services = app_state.services(request)
    try:
        tool = services.tools.toolbox.find(name)
    except NotFoundError as exc:
        return PlainTextResponse(exc.message, 404)
    try:
        arguments = await _arguments(request, services)
        caller = caller_of(scopes.principal(request), scopes.span(request))
        call = services.tools.toolbox.use(tool, arguments, caller)
        return _json(await streaming.unless_gone(request, call))
    except NotFoundError as exc:
        # The tool exists; the thing that its arguments name does not.
        return errors.as_message(InvalidRequestError(exc.message))
    except (CarawayError, RefusedRequestError) as exc:
        return errors.as_message(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE


async def _arguments(request: Request, services: Services) -> object:
    body = await bodies.read(request, services.max_body_bytes)
    return await parsing.parsed(request, body, _parsed)


def _parsed(body: bytes) -> object:
    try:
        return arguments_.parse(body.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise InvalidRequestError(
            f"the request body is not UTF-8: byte {exc.start}; send JSON encoded as UTF-8"
        ) from exc


def _json(value: object) -> Response:
    return Response(json_values.dumped(value), media_type="application/json")
