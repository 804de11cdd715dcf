"""The route of messages."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_ai import json_values
from caraway_ai.messages import answers, requests
from caraway_ai.messages.answers import MessageEvents
from caraway_ai.protocols import ChatChunk, ChatRequest, JsonObject
from caraway_gateway.api import app_state
from caraway_gateway.api.chat import errors as chat_errors
from caraway_gateway.api.chat import streams
from caraway_gateway.api.chat.routes import caller
from caraway_gateway.api.messages import errors
from caraway_gateway.api.messages.documentation import CREATE
from caraway_serving import bodies, parsing, streaming
from caraway_serving.errors import CLIENT_GONE

router = APIRouter(tags=["Models"])
_HINT = 'send a request, for example {"model": "...", "max_tokens": 1024, "messages": [...]}'


@router.post("/v1/messages", **CREATE)
async def create_message(request: Request) -> Response:
    """Answer messages with a model of the manifest, whole or as a stream of events."""
    services = app_state.services(request)
    models = services.models
    try:
        body = await bodies.read(request, services.max_body_bytes)
        chat, shows_thoughts = await parsing.parsed(request, body, _parsed)
        name, who = chat["model"], caller(request)
        if chat.get("stream"):
            models.members(name)
            events = MessageEvents(name, shows_thoughts=shows_thoughts)
            pump = await streams.opened(request, _told(events, models.stream(name, chat, who)))
            return streams.EventStream(pump, _frame, _failed, b"")
        completion = await streaming.unless_gone(request, models.chat(name, chat, who))
    except chat_errors.KNOWN as exc:
        return errors.envelope(exc)
    except ClientDisconnect:
        return CLIENT_GONE
    message = answers.message(name, completion, shows_thoughts=shows_thoughts)
    return Response(json_values.dumped(message), media_type="application/json")


def _parsed(body: bytes) -> tuple[ChatRequest, bool]:
    """Return the request of a body, and whether its answer shows thoughts."""
    document = parsing.json(body, _HINT)
    return requests.chat_request(document), requests.wants_thoughts(document)


async def _told(
    events: MessageEvents, source: AsyncGenerator[ChatChunk, None]
) -> AsyncGenerator[JsonObject, None]:
    has_begun = False
    async with aclosing(source) as chunks:
        async for chunk in chunks:
            if not has_begun:
                has_begun = True
                yield events.first_event()
            for event in events.events_of_chunk(chunk):
                yield event
    for event in events.end():
        yield event


def _frame(event: JsonObject) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\n" + streams.data(event)


def _failed(error: dict[str, object]) -> bytes:
    """Return the frame of an error in the middle of a stream, which also ends it."""
    return _frame(errors.in_stream(error))
