"""Translates answers of chats into messages, whole or as events."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from caraway_ai.protocols import ChatChunk, ChatCompletion, JsonObject

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def message(model: str, completion: ChatCompletion, *, shows_thoughts: bool) -> JsonObject:
    """Return the message for a whole answer."""
    choice = completion["choices"][0]
    said = choice["message"]
    content: list[JsonObject] = []
    if shows_thoughts and said.get("reasoning_content"):
        content.append(_thought(said["reasoning_content"]))
    text = (said.get("content") or "") + (said.get("refusal") or "")
    if text:
        content.append({"type": "text", "text": text})
    for call in said.get("tool_calls") or ():
        function = call["function"]
        arguments = _arguments(function.get("arguments"))
        content.append(_tool_use(call.get("id"), function.get("name"), arguments))
    begun = _begun(model, content, _usage(completion.get("usage")))
    return {**begun, "stop_reason": _reason(choice.get("finish_reason"))}


class MessageEvents:
    """The events of one stream.

    Blocks come one after another here, while parts of several calls of tools may come mixed in a
    chat. The parts of the first call are sent as they come, and what follows it at the end.
    """

    def __init__(self, model: str, *, shows_thoughts: bool) -> None:
        self._model = model
        self._shows_thoughts = shows_thoughts
        self._index = -1
        self._open = ""
        self._calls: dict[int, JsonObject] = {}
        self._streamed: int | None = None
        self._late: list[str] = []
        self._reason: str | None = None
        self._spent: object = None

    def first_event(self) -> JsonObject:
        """Return the first event."""
        return {"type": "message_start", "message": _begun(self._model, [], _usage(None))}

    def events_of_chunk(self, chunk: ChatChunk) -> Iterator[JsonObject]:
        """Yield the events of one chunk."""
        self._spent = chunk.get("usage") or self._spent
        for choice in chunk["choices"]:
            if choice["index"]:
                continue
            delta = choice["delta"]
            if self._shows_thoughts and delta.get("reasoning_content"):
                yield from self._think(delta["reasoning_content"])
            for name in ("content", "refusal"):
                if delta.get(name):
                    yield from self._say(delta[name])
            for call in delta.get("tool_calls") or ():
                yield from self._call(call)
            self._reason = choice["finish_reason"] or self._reason

    def end(self) -> Iterator[JsonObject]:
        """Yield the last events."""
        yield from self._close()
        for index, call in self._calls.items():
            if index != self._streamed:
                yield from self._whole_call(call)
        self._streamed = None
        if self._late:
            yield from self._say("".join(self._late))
            yield from self._close()
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": _reason(self._reason), "stop_sequence": None},
            "usage": _usage(self._spent),
        }
        yield {"type": "message_stop"}

    def _think(self, text: str) -> Iterator[JsonObject]:
        if self._streamed is not None:
            return
        if self._open != "thinking":
            yield from self._start(_thought(""))
        yield self._delta({"type": "thinking_delta", "thinking": text})

    def _say(self, text: str) -> Iterator[JsonObject]:
        if self._streamed is not None:
            self._late.append(text)
            return
        if self._open != "text":
            yield from self._start({"type": "text", "text": ""})
        yield self._delta({"type": "text_delta", "text": text})

    def _call(self, fragment: JsonObject) -> Iterator[JsonObject]:
        index = fragment["index"]
        call = self._calls.setdefault(index, {"id": None, "name": "", "arguments": ""})
        function = fragment.get("function") or {}
        call["id"] = call["id"] or fragment.get("id")
        call["name"] = call["name"] or function.get("name") or ""
        more = function.get("arguments") or ""
        call["arguments"] += more
        if self._streamed is None and call["name"]:
            self._streamed = index
            yield from self._start(_tool_use(call["id"], call["name"], {}))
            more = call["arguments"]
        if self._streamed == index and more:
            yield self._delta({"type": "input_json_delta", "partial_json": more})

    def _whole_call(self, call: JsonObject) -> Iterator[JsonObject]:
        yield from self._start(_tool_use(call["id"], call["name"], {}))
        if call["arguments"]:
            yield self._delta({"type": "input_json_delta", "partial_json": call["arguments"]})
        yield from self._close()

    def _start(self, block: JsonObject) -> Iterator[JsonObject]:
        yield from self._close()
        self._index += 1
        self._open = block["type"]
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close(self) -> Iterator[JsonObject]:
        if self._open:
            self._open = ""
            yield {"type": "content_block_stop", "index": self._index}


def _begun(model: str, content: list[JsonObject], usage: JsonObject) -> JsonObject:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _thought(text: str) -> JsonObject:
    # The signature is the provider's, and the chat wire does not carry it.
    return {"type": "thinking", "thinking": text, "signature": ""}


def _tool_use(id_: object, name: object, arguments: JsonObject) -> JsonObject:
    found = id_ or f"toolu_{secrets.token_hex(12)}"
    return {"type": "tool_use", "id": found, "name": name, "input": arguments}


def _arguments(text: Any) -> JsonObject:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = text
    # Models make mistakes; the caller sees the text as it is.
    return found if isinstance(found, dict) else {"arguments": found}


def _reason(reason: str | None) -> str:
    return _REASONS.get(reason or "", "end_turn")


def _usage(counts: object) -> JsonObject:
    counts = counts if isinstance(counts, dict) else {}
    cached = (counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": max((counts.get("prompt_tokens") or 0) - cached, 0),
        "output_tokens": counts.get("completion_tokens") or 0,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
    }
