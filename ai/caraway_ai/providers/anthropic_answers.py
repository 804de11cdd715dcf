"""Translates answers of Anthropic's messages API into those of the chat wire."""

import json
import time
from collections.abc import Iterator

from caraway_ai.protocols import ChatChunk, ChatCompletion, JsonObject

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def completion(answer: object) -> ChatCompletion:
    """Return a whole answer.

    Raises:
        ValueError: it is not one.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
        raise ValueError("it has no content")
    if not answer.get("stop_reason"):
        raise ValueError("it has no stop_reason")
    try:
        return _completion(answer)
    except (AttributeError, KeyError, RecursionError, TypeError) as exc:
        raise ValueError("a part of it cannot be read") from exc


def _completion(answer: JsonObject) -> ChatCompletion:
    texts, thoughts, calls = [], [], []
    for block in answer["content"]:
        match block.get("type"):
            case "text":
                texts.append(block["text"])
            case "thinking":
                thoughts.append(block.get("thinking", ""))
            case "tool_use":
                function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                calls.append({"id": block["id"], "type": "function", "function": function})
    message: JsonObject = {"role": "assistant", "content": "".join(texts) or None, "refusal": None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None,
              "finish_reason": _reason(answer["stop_reason"])}  # fmt: skip
    return {
        "id": answer.get("id"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.get("model"),
        "choices": [choice],
        "usage": usage(answer.get("usage") or {}),
    }


def usage(counts: JsonObject) -> JsonObject:
    """Return the counts of tokens."""
    cached = counts.get("cache_read_input_tokens") or 0
    prompt = (
        (counts.get("input_tokens") or 0)
        + (counts.get("cache_creation_input_tokens") or 0)
        + cached
    )
    said = counts.get("output_tokens") or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said,
        "total_tokens": prompt + said,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _reason(reason: str) -> str:
    return _REASONS.get(reason, "stop")


class MessageStream:
    """Translates the events of one stream."""

    def __init__(self) -> None:
        self.is_over = False
        self._head: JsonObject = {}
        self._usage: JsonObject = {}
        self._calls: dict[int, int] = {}
        self._silent: set[int] = set()

    def chunks_of_event(self, event: JsonObject) -> Iterator[ChatChunk]:
        """Yield the chunks of one event.

        Raises:
            KeyError, TypeError: the event is damaged.
        """
        match event.get("type"):
            case "message_start":
                message = event["message"]
                self._head = {"id": message.get("id"), "created": int(time.time()),
                              "model": message.get("model")}  # fmt: skip
                self._usage = dict(message.get("usage") or {})
                yield self._chunk({"role": "assistant", "content": ""})
            case "content_block_start":
                yield from self._begin_block(event["index"], event["content_block"])
            case "content_block_delta":
                yield from self._delta(event["index"], event["delta"])
            case "content_block_stop":
                if event["index"] in self._silent:
                    # A call without arguments has no deltas there; here they are an empty object.
                    yield self._call(event["index"], {"arguments": "{}"})
            case "message_delta":
                self._usage |= {k: v for k, v in (event.get("usage") or {}).items() if v}
                if reason := event["delta"].get("stop_reason"):
                    yield self._chunk({}, _reason(reason))
            case "message_stop":
                self.is_over = True
                yield {**self._chunk({}), "choices": [], "usage": usage(self._usage)}

    def _begin_block(self, index: int, block: JsonObject) -> Iterator[ChatChunk]:
        if block["type"] == "text" and block.get("text"):
            yield self._chunk({"content": block["text"]})
        elif block["type"] == "tool_use":
            self._calls[index] = len(self._calls)
            self._silent.add(index)
            function = {"name": block["name"], "arguments": ""}
            yield self._call(index, function, {"id": block["id"], "type": "function"})

    def _delta(self, index: int, delta: JsonObject) -> Iterator[ChatChunk]:
        match delta["type"]:
            case "text_delta":
                yield self._chunk({"content": delta["text"]})
            case "thinking_delta":
                yield self._chunk({"reasoning_content": delta["thinking"]})
            case "input_json_delta" if delta["partial_json"]:
                self._silent.discard(index)
                yield self._call(index, {"arguments": delta["partial_json"]})

    def _call(self, index: int, function: JsonObject, head: JsonObject | None = None) -> ChatChunk:
        call = {"index": self._calls[index], **(head or {}), "function": function}
        return self._chunk({"tool_calls": [call]})

    def _chunk(self, delta: JsonObject, reason: str | None = None) -> ChatChunk:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {"object": "chat.completion.chunk", **self._head, "choices": [choice]}
