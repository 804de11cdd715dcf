"""The routes of responses."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_ai.responses import answers, requests
from caraway_ai.responses.events import ResponseEvents
from caraway_core.errors import CarawayError
from caraway_scheduler.api import app_state
from caraway_scheduler.api.chat import errors, streams
from caraway_scheduler.api.chat.routes import caller
from caraway_scheduler.api.responses import documentation
from caraway_scheduler.models.conversations import KeptResponse
from caraway_scheduler.models.service import Models
from caraway_scheduler.models.states import ModelCaller
from caraway_serving import bodies, scopes, streaming
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
        wanted = requests.check_request(bodies.json(body, _HINT))
        models.members(wanted["model"])
        turn = _Turn(models, wanted, caller(request))
        chat = await turn.chat_request()
        if wanted.get("stream"):
            pump = await streams.opened(request, turn.stream(chat))
            return streams.EventStream(pump, _frame, _failed, b"")
        answer = await streaming.unless_gone(request, turn.answer(chat))
    except errors.KNOWN as exc:
        return errors.response(exc)
    except ClientDisconnect:
        return CLIENT_GONE
    return Response(orjson.dumps(answer), media_type="application/json")


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


class _Turn:
    """One request, from the messages before it to the response that is kept."""

    def __init__(self, models: Models, wanted: JsonObject, who: ModelCaller) -> None:
        self._models = models
        self._wanted = wanted
        self._who = who
        self._before: list[JsonObject] = []

    async def chat_request(self) -> ChatRequest:
        """Return the chat request, after the messages of the response that it goes on from."""
        if (id_ := self._wanted.get("previous_response_id")) is not None:
            kept = await self._models.conversations.find(self._who.principal.id, id_)
            if kept is None:
                raise RequestFieldError(
                    "previous_response_id",
                    "is no stored response of this key; responses are stored for 24 h, unless "
                    "'store' is false: send the whole conversation as 'input'",
                )
            self._before = kept.messages
        return requests.chat_request(self._wanted, self._before)

    async def answer(self, chat: ChatRequest) -> JsonObject:
        completion = await self._models.chat(self._wanted["model"], chat, self._who)
        return await self._kept(answers.answered(answers.begun(self._wanted), completion))

    async def stream(self, chat: ChatRequest) -> AsyncGenerator[JsonObject, None]:
        events = ResponseEvents(answers.begun(self._wanted))
        source = self._models.stream(self._wanted["model"], chat, self._who)
        has_begun = False
        try:
            async with aclosing(source) as chunks:
                async for chunk in chunks:
                    if not has_begun:
                        has_begun = True
                        for event in events.begin():
                            yield event
                    for event in events.take(chunk):
                        yield event
        except errors.KNOWN as exc:
            if not has_begun:
                raise
            for event in events.fail(errors.document(exc)):
                yield event
            return
        *others, last = events.end()
        for event in others:
            yield event
        yield {**last, "response": await self._kept(last["response"])}

    async def _kept(self, response: JsonObject) -> JsonObject:
        if not response["store"]:
            return response
        given = requests.input_messages(self._wanted["input"])
        messages = [*self._before, *given, answers.said(response["output"])]
        kept = KeptResponse(response, messages)
        is_kept = await self._models.conversations.keep(self._who.principal.id, kept)
        return response if is_kept else {**response, "store": False}


def _frame(event: JsonObject) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\n" + streams.data(event)


def _failed(error: dict[str, Any]) -> bytes:
    """Return the frame of an error that is none of a model, which also ends the stream."""
    return _frame({"type": "error", "code": error["code"], "message": error["message"],
                   "param": None, "sequence_number": 0})  # fmt: skip


def _none(response_id: str) -> Response:
    told = {"message": f"no stored response '{response_id[:100]}' of this key",
            "type": "invalid_request_error", "param": "response_id", "code": None}  # fmt: skip
    return JSONResponse({"error": told}, 404)
