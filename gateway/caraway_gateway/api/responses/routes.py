"""The routes of responses."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_ai import json_values
from caraway_ai.protocols import JsonObject
from caraway_ai.responses import requests
from caraway_core.errors import CarawayError
from caraway_gateway.api import app_state
from caraway_gateway.api.chat import errors, streams
from caraway_gateway.api.chat.routes import caller
from caraway_gateway.api.responses import documentation
from caraway_gateway.api.responses.turns import ChatTurn, NativeTurn
from caraway_serving import bodies, parsing, scopes, streaming
from caraway_serving.errors import CLIENT_GONE

router = APIRouter(tags=["Models"])
_HINT = 'send a request, for example {"model": "...", "input": "..."}'
Id = Annotated[str, Path(description="The `id` of a response that was stored.")]


@router.post("/v1/responses", **documentation.CREATE)
async def create_response(request: Request) -> Response:
    """Answer an input with a model of the manifest, whole or as a stream of events."""
    services = app_state.services(request)
    models = services.models
    try:
        body = await bodies.read(request, services.max_body_bytes)
        document = await parsing.parsed(request, body, _parsed)
        models.members(document["model"])
        who = caller(request)
        call = models.responses(document["model"], who)
        turn = (
            ChatTurn(models, document, who)
            if call is None
            else NativeTurn(models, call, document, who)
        )
        await turn.prepare()
        if document.get("stream"):
            pump = await streams.opened(request, turn.stream())
            return streams.EventStream(pump, _frame, _failed, b"")
        answer = await streaming.unless_gone(request, turn.answer())
    except errors.KNOWN as exc:
        return errors.response(exc)
    except ClientDisconnect:
        return CLIENT_GONE
    return Response(json_values.dumped(answer), media_type="application/json")


@router.get("/v1/responses/{response_id}", **documentation.GET)
async def get_response(request: Request, response_id: Id) -> Response:
    """Return a stored response of the caller."""
    models = app_state.services(request).models
    try:
        kept = await models.conversations.find(scopes.principal(request).id, response_id)
    except CarawayError as exc:
        return errors.response(exc)
    return _none(response_id) if kept is None else JSONResponse(kept.response)


@router.delete("/v1/responses/{response_id}", **documentation.DELETE)
async def delete_response(request: Request, response_id: Id) -> Response:
    """Delete a stored response of the caller."""
    models = app_state.services(request).models
    try:
        was_there = await models.conversations.forget(scopes.principal(request).id, response_id)
    except CarawayError as exc:
        return errors.response(exc)
    if not was_there:
        return _none(response_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


def _parsed(body: bytes) -> JsonObject:
    return requests.check_request(parsing.json(body, _HINT))


def _frame(event: JsonObject) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\n" + streams.data(event)


def _failed(error: dict[str, object]) -> bytes:
    """Return the frame of an error that is none of a model, which also ends the stream."""
    return _frame({"type": "error", "code": error["code"], "message": error["message"],
                   "param": None, "sequence_number": 0})  # fmt: skip


def _none(response_id: str) -> Response:
    told = {"message": f"no stored response '{response_id[:100]}' of this key",
            "type": "invalid_request_error", "param": "response_id", "code": None}  # fmt: skip
    return JSONResponse({"error": told}, 404)
