"""The responses API of a server that has one: events and items pass through as they are."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from caraway_ai.protocols import JsonObject
from caraway_ai.providers.failures import FailureReader
from caraway_core.errors import ModelError

_THOUGHTS = "reasoning.encrypted_content"
_WITH_IDS = ("message", "function_call")
_ENDS = ("response.completed", "response.incomplete")


@dataclass(frozen=True, slots=True)
class ResponsesEndpoint:
    """The responses API of a provider: a path below its address, or an address."""

    model: str
    url: str = "/responses"
    has_query: bool = True


class WireSender(Protocol):
    """Sends bodies to a provider, and reads its answers."""

    async def post(
        self, url: str, body: JsonObject, *, is_stream: bool, has_query: bool = True
    ) -> httpx2.Response: ...

    def read_whole(self, response: httpx2.Response, needed: str) -> object: ...

    def read_stream(self, response: httpx2.Response) -> AsyncGenerator[Any, None]: ...


class OpenAIResponses:
    """One model of one server, by its responses API."""

    def __init__(
        self, name: str, endpoint: ResponsesEndpoint, sender: WireSender, failures: FailureReader
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._sender = sender
        self._failures = failures
        self._has_thoughts = False

    async def respond(self, request: JsonObject) -> JsonObject:
        response = await self._post(request, is_stream=False)
        answer = self._sender.read_whole(response, "output")
        return self._checked(answer)

    async def events(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        response = await self._post(request, is_stream=True)
        is_complete = False
        async with aclosing(self._sender.read_stream(response)) as events:
            async for event in events:
                type_ = event.get("type") if isinstance(event, dict) else None
                if not isinstance(type_, str):
                    raise self._failures.damaged("an event of its stream has no type")
                if type_ == "error":
                    raise self._failures.in_stream({"error": event})
                if type_ in (*_ENDS, "response.failed"):
                    self._checked(event.get("response"))
                    is_complete = True
                yield event
                if is_complete:
                    return
        raise ModelError(
            f"model '{self._name}': the stream of its provider ended before the answer was "
            "complete; send the request again"
        )

    async def _post(self, request: JsonObject, *, is_stream: bool) -> httpx2.Response:
        body = {**request, "model": self._endpoint.model, "stream": is_stream, "store": False}
        body.pop("previous_response_id", None)
        if isinstance(body.get("input"), list):
            body["input"] = sendable(body["input"])
        if not is_stream:
            body.pop("stream_options", None)
        if self._has_thoughts or (request.get("reasoning") or {}).get("effort"):
            # Models without thoughts refuse this, so it waits until one has shown some.
            include = request.get("include") or ()
            body["include"] = list(dict.fromkeys([*include, _THOUGHTS]))
        try:
            return await self._sender.post(
                self._endpoint.url, body, is_stream=is_stream, has_query=self._endpoint.has_query
            )
        except ModelError as exc:
            if exc.type == "not_found":
                message = f"{exc.message}; without a responses API, set 'responses_api: disabled'"
                raise ModelError(message, "not_found") from exc
            raise

    def _checked(self, response: Any) -> JsonObject:
        output = response.get("output") if isinstance(response, dict) else None
        if isinstance(response, dict) and response.get("status") == "failed":
            raise self._failures.in_stream({"error": response.get("error") or {}})
        if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
            raise self._failures.damaged("its response has no list of items")
        if response.get("status") not in ("completed", "incomplete"):
            raise self._failures.damaged("its response is not complete")
        self._has_thoughts |= any(item.get("type") == "reasoning" for item in output)
        return response  # type: ignore[no-any-return] # a mapping, as was checked


def sendable(items: Sequence[Any]) -> list[object]:
    """Return the items of a conversation as a provider that kept none of them takes them.

    Thoughts are sent back encrypted or not at all, and never without the item that they led to.
    An item that has lost its thoughts loses its id, too, by which the provider would miss them;
    calls that the provider ran itself are nothing without it, and their results are in the text.
    """
    found: list[Any] = []
    has_lost = False
    for index, item in enumerate(items):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "reasoning":
            following = items[index + 1] if index + 1 < len(items) else None
            is_last = isinstance(following, dict) and following.get("type") != "reasoning"
            if not (is_last and item.get("encrypted_content")):
                has_lost = True
                continue
            has_lost = False
        elif isinstance(item, dict) and item.get("role") in ("user", "developer", "system"):
            has_lost = False
        elif has_lost and kind in _WITH_IDS:
            item = {name: value for name, value in item.items() if name != "id"}
        elif has_lost and str(kind).endswith("_call") and "call_id" not in item:
            continue
        found.append(item)
    return found
