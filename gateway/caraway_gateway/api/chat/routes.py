"""The route of chats."""

from dataclasses import replace

import orjson
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_ai.chat import checking
from caraway_ai.protocols import ChatChunk, ChatRequest
from caraway_assist.models.states import ModelCaller
from caraway_gateway.api import app_state
from caraway_gateway.api.chat import errors, streams
from caraway_gateway.api.chat.documentation import CHAT
from caraway_serving import bodies, parsing, scopes, streaming
from caraway_serving.errors import CLIENT_GONE

router = APIRouter(tags=["Models"])
_HINT = 'send a chat request, for example {"model": "...", "messages": [...]}'
_PROGRESS = ("x-caraway-completion-progress", "x-spiceai-completion-progress")
_DONE = b"data: [DONE]\n\n"


@router.post("/v1/chat/completions", **CHAT)
async def complete_chat(request: Request) -> Response:
    """Answer a chat with a model of the manifest, whole or as a stream of chunks."""
    models = app_state.services(request).models
    try:
        body = await bodies.read(request, app_state.services(request).max_body_bytes)
        chat_request = await parsing.parsed(request, body, _parsed)
        name, who = chat_request["model"], caller(request)
        if chat_request.get("stream"):
            models.members(name)
            pump = await streams.opened(request, models.stream(name, chat_request, who))
            return streams.EventStream(pump, _frame(chat_request), failed, _DONE)
        answer = await streaming.unless_gone(request, models.chat(name, chat_request, who))
    except errors.KNOWN as exc:
        return errors.response(exc)
    except ClientDisconnect:
        return CLIENT_GONE
    return Response(orjson.dumps(answer), media_type="application/json")


def _parsed(body: bytes) -> ChatRequest:
    return checking.check_request(parsing.json(body, _HINT))


def caller(request: Request) -> ModelCaller:
    """Return who sent a request."""
    principal = scopes.principal(request)
    span = replace(scopes.span(request), principal=principal.id)
    shows_progress = any(request.headers.get(name) == "enabled" for name in _PROGRESS)
    return ModelCaller(span, principal, shows_progress)


def failed(error: dict[str, object]) -> bytes:
    """Return the frame of an error in the middle of a stream, which also ends it."""
    return b"event: error\n" + streams.data({"type": "error", "error": error})


def _frame(request: ChatRequest) -> streams.Frame:
    options = request.get("stream_options") or {}
    if options.get("include_usage"):
        return streams.data

    def without_usage(chunk: ChatChunk) -> bytes:
        # The runtime always asks for it, and counts.
        if chunk.pop("usage", None) is not None and not chunk["choices"]:
            return b""
        return streams.data(chunk)

    return without_usage
