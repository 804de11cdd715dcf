"""Requests of the responses API, from the items before them to the response that is kept."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_ai.responses import answers, requests
from caraway_ai.responses.events import ResponseEvents
from caraway_assist.models.conversations import KeptResponse
from caraway_assist.models.responses_call import ResponsesCall
from caraway_assist.models.service import Models
from caraway_assist.models.states import ModelCaller
from caraway_gateway.api.chat import errors

_END = ("response.completed", "response.incomplete")


class Conversation:
    """The conversation that a request continues, and the part of it that is kept."""

    def __init__(self, models: Models, wanted: JsonObject, who: ModelCaller) -> None:
        self._models = models
        self._wanted = wanted
        self._who = who
        self.before: list[JsonObject] = []

    async def find(self) -> None:
        """Find the items before the request.

        Raises:
            RequestFieldError: there is no such earlier response.
        """
        if (id_ := self._wanted.get("previous_response_id")) is None:
            return
        kept = await self._models.conversations.find(self._who.principal.id, id_)
        if kept is None:
            raise RequestFieldError(
                "previous_response_id",
                "is no stored response of this key; responses are stored for 24 h, unless "
                "'store' is false: send the whole conversation as 'input'",
            )
        self.before = kept.items

    async def kept(self, response: JsonObject, said: Sequence[JsonObject]) -> JsonObject:
        """Keep a response, unless the request forbids it; return it as the caller sees it."""
        if not response["store"]:
            return response
        given = requests.input_items(self._wanted["input"])
        kept = KeptResponse(response, [*self.before, *given, *said])
        is_kept = await self._models.conversations.keep(self._who.principal.id, kept)
        return response if is_kept else {**response, "store": False}


class ChatTurn:
    """A request that becomes a chat, for a provider without a responses API."""

    def __init__(self, models: Models, wanted: JsonObject, who: ModelCaller) -> None:
        self._models = models
        self._wanted = wanted
        self._who = who
        self._conversation = Conversation(models, wanted, who)
        self._chat: ChatRequest = {}

    async def prepare(self) -> None:
        """Make the request of the provider.

        Raises:
            RequestFieldError: a field is wrong, or cannot be translated.
        """
        await self._conversation.find()
        self._chat = requests.chat_request(self._wanted, self._conversation.before)

    async def answer(self) -> JsonObject:
        completion = await self._models.chat(self._wanted["model"], self._chat, self._who)
        response = answers.answered(answers.begun(self._wanted), completion)
        return await self._conversation.kept(response, response["output"])

    async def stream(self) -> AsyncGenerator[JsonObject, None]:
        events = ResponseEvents(answers.begun(self._wanted))
        source = self._models.stream(self._wanted["model"], self._chat, self._who)
        has_begun = False
        try:
            async with aclosing(source) as chunks:
                async for chunk in chunks:
                    if not has_begun:
                        has_begun = True
                        for event in events.first_events():
                            yield event
                    for event in events.events_of_chunk(chunk):
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
        response = last["response"]
        yield {**last, "response": await self._conversation.kept(response, response["output"])}


class NativeTurn:
    """A request that passes to the responses API of the provider, whose events keep their shape.

    The provider keeps nothing, so ids, `previous_response_id` and `store` are ours.
    """

    def __init__(
        self, models: Models, call: ResponsesCall, wanted: JsonObject, who: ModelCaller
    ) -> None:
        self._call = call
        self._wanted = wanted
        self._conversation = Conversation(models, wanted, who)
        self._request: JsonObject = {}
        self._ours: JsonObject = {
            "id": answers.new_id("resp"),
            "object": "response",
            "model": wanted["model"],
            "previous_response_id": wanted.get("previous_response_id"),
            "store": wanted.get("store") is not False,
        }

    async def prepare(self) -> None:
        """Make the request of the provider.

        Raises:
            RequestFieldError: it asks for what the provider would have to keep.
        """
        requests.check_native(self._wanted)
        await self._conversation.find()
        given = requests.input_items(self._wanted["input"])
        self._request = {**self._wanted, "input": [*self._conversation.before, *given]}

    async def answer(self) -> JsonObject:
        response = {**await self._call.respond(self._request), **self._ours}
        return await self._conversation.kept(response, self._call.said)

    async def stream(self) -> AsyncGenerator[JsonObject, None]:
        number = 0
        response: JsonObject = {}
        done: list[JsonObject] = []
        try:
            async with aclosing(self._call.events(self._request)) as events:
                async for event in events:
                    numbered = {**event, "sequence_number": number}
                    number += 1
                    if event["type"] == "response.output_item.done":
                        done.append(event.get("item") or {})
                    if isinstance(event.get("response"), dict):
                        response = {**event["response"], **self._ours}
                        if event["type"] in _END:
                            response = await self._conversation.kept(response, self._call.said)
                        numbered["response"] = response
                    yield numbered
        except errors.KNOWN as exc:
            if not number:
                raise
            error = errors.document(exc)
            told = {"code": error["code"] or "server_error", "message": error["message"]}
            failed = {**answers.begun(self._wanted), **response, **self._ours,
                      "status": "failed", "error": told, "output": done}  # fmt: skip
            yield {"type": "response.failed", "sequence_number": number, "response": failed}
