"""Reads tool calls that a local model writes as text.

Chat templates ask for `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`. Small models
leave the tags out or write a fence of Markdown in their place, which the server returns as content.
"""

import json
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from caraway_ai.protocols import ChatChunk, ChatCompletion, JsonObject
from caraway_core.json_texts import strict_json

_OPENING_TAG = "<tool_call>"
_MARKS = re.compile(r"(?:\s|</?tool_call>|```(?:json|tool_call|xml)?|[\[\],])*")
_BEGINNINGS = ("{", "[", "```", _OPENING_TAG)
_MOST_CALLS = 32
_DECODER = json.JSONDecoder()


def split_calls(text: str, names: Collection[str]) -> tuple[str, Sequence[JsonObject]]:
    """Return the content before the calls of a text, and the calls.

    A call has the name of an offered tool and an object of arguments. What follows the last call is
    left out. Without the tag, calls are read only at the beginning: an answer may show JSON.
    """
    if calls := _calls(text, names):
        return "", calls
    content, _, rest = text.partition(_OPENING_TAG)
    calls = _calls(rest, names)
    return (content.strip(), calls) if calls else (text, ())


def may_begin_call(text: str) -> bool:
    """Return True while a text may still turn out to begin with a call."""
    said = text.lstrip()
    return not said or any(
        said.startswith(beginning) or beginning.startswith(said) for beginning in _BEGINNINGS
    )


def with_calls(answer: ChatCompletion, names: Collection[str]) -> ChatCompletion:
    """Return an answer with the calls in its texts as `tool_calls`."""
    return {**answer, "choices": [_read_choice(choice, names) for choice in answer["choices"]]}


def has_calls(answer: ChatCompletion) -> bool:
    """Return True if a choice of an answer calls a tool."""
    return any(choice["message"].get("tool_calls") for choice in answer["choices"])


@dataclass(slots=True)
class WrittenCallReader:
    """Reads the chunks of one stream. Text that may be a call is held back until that is known."""

    names: Collection[str]
    _held: dict[int, str] = field(default_factory=dict)
    _plain: set[int] = field(default_factory=set)

    def read_chunk(self, chunk: ChatChunk) -> Iterator[ChatChunk]:
        """Yield what a chunk adds to the answer."""
        choices = [kept for choice in chunk["choices"] for kept in self._read(choice)]
        if choices or not chunk["choices"]:
            yield {**chunk, "choices": choices}

    def _read(self, choice: JsonObject) -> Iterator[JsonObject]:
        index, delta = choice["index"], dict(choice["delta"])
        text = self._held.pop(index, "") + (delta.pop("content", None) or "")
        reason = choice.get("finish_reason")
        if index in self._plain or delta.get("tool_calls"):
            kept, text = _tail_of_tag(text) if reason is None else (text, "")
        elif may_begin_call(text):
            kept = ""
        else:
            self._plain.add(index)
            kept, text = _tail_of_tag(text)
        if reason is not None:
            content, calls = split_calls(text or kept, self.names)
            if calls:
                yield {**choice, "delta": {**delta, "content": content or None,
                                           "tool_calls": _numbered(calls)},
                       "finish_reason": "tool_calls"}  # fmt: skip
                return
            kept, text = text or kept, ""
        if text:
            self._held[index] = text
        if kept:
            delta["content"] = kept
        if delta or reason is not None:
            yield {**choice, "delta": delta}


def chunks_of(answer: ChatCompletion) -> Iterator[ChatChunk]:
    """Yield a whole answer as the chunks of a stream."""
    head = {name: value for name, value in answer.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    choices = []
    for choice in answer["choices"]:
        delta = dict(choice["message"])
        if delta.get("tool_calls"):
            delta["tool_calls"] = _numbered(delta["tool_calls"])
        choices.append({"index": choice["index"], "delta": delta,
                        "finish_reason": choice["finish_reason"]})  # fmt: skip
    yield {**head, "choices": choices}
    if answer.get("usage"):
        yield {**head, "choices": [], "usage": answer["usage"]}


def _tail_of_tag(text: str) -> tuple[str, str]:
    """Return the text that can be sent now, and the rest: a tag, or what may become one."""
    before, tag, after = text.partition(_OPENING_TAG)
    if tag:
        return before, tag + after
    for length in range(min(len(text), len(_OPENING_TAG) - 1), 0, -1):
        if text.endswith(_OPENING_TAG[:length]):
            return text[:-length], text[-length:]
    return text, ""


def _read_choice(choice: JsonObject, names: Collection[str]) -> JsonObject:
    message = choice["message"]
    if message.get("tool_calls") or not isinstance(message.get("content"), str):
        return choice
    content, calls = split_calls(message["content"], names)
    if not calls:
        return choice
    read = {**message, "content": content or None, "tool_calls": list(calls)}
    return {**choice, "message": read, "finish_reason": "tool_calls"}


def _calls(text: str, names: Collection[str]) -> Sequence[JsonObject]:
    documents: list[JsonObject] = []
    seen: set[tuple[str, str]] = set()
    at = _after_marks(text, 0)
    while at < len(text) and len(documents) < _MOST_CALLS:
        try:
            written, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        call = _call(written, names)
        if call is None:
            break
        if call not in seen:
            seen.add(call)
            function = {"name": call[0], "arguments": call[1]}
            identifier = f"call_{secrets.token_hex(8)}"
            documents.append({"id": identifier, "type": "function", "function": function})
        at = _after_marks(text, at)
    return documents


def _after_marks(text: str, at: int) -> int:
    match = _MARKS.match(text, at)
    return match.end() if match else at


def _call(written: object, names: Collection[str]) -> tuple[str, str] | None:
    """Return the name and the arguments of a call, or None where a value is not one."""
    if not isinstance(written, dict):
        return None
    name, arguments = written.get("name"), written.get("arguments", written.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = strict_json.parse(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return name, json.dumps(arguments)


def _numbered(calls: Sequence[JsonObject]) -> list[JsonObject]:
    return [{"index": number, **call} for number, call in enumerate(calls)]
