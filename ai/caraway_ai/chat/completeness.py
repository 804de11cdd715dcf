"""Finds answers of providers that are damaged or cut off, which no client of theirs notices."""

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from caraway_ai.protocols import ChatChunk, ChatCompletion
from caraway_core.errors import ModelError


def check_completion(answer: Any, model: str, asked: int = 1) -> ChatCompletion:
    """Return an answer that is complete; `asked` is how many choices it should have.

    Raises:
        ModelError: it is not.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices:
        raise _damaged(model, "it has no choices")
    if len(choices) < asked:
        raise _damaged(model, f"it has {len(choices)} of {asked} choices")
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise _damaged(model, "a choice has no message")
        reason = choice.get("finish_reason")
        if not isinstance(reason, str) or not reason:
            raise _damaged(model, "a choice has no finish_reason")
        _check_said(choice["message"], model)
        for call in choice["message"].get("tool_calls") or ():
            _fill_in(call, model)
    answer["object"] = "chat.completion"
    _stamp(answer, f"chatcmpl-{secrets.token_hex(12)}", int(time.time()))
    return answer  # type: ignore[no-any-return] # a mapping, as was checked


class StreamCheck:
    """Sees every chunk of one stream, fills in what clients rely on, and judges its end."""

    def __init__(self, model: str, choices: int) -> None:
        self._model = model
        self._missing = set(range(choices))
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._calls: dict[int, int] = {}

    def check_chunk(self, chunk: Any) -> ChatChunk:
        """Return a chunk of the right shape.

        Raises:
            ModelError: it is not one.
        """
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if choices is None and isinstance(chunk, dict) and "usage" in chunk:
            choices = chunk["choices"] = []
        if not isinstance(choices, list):
            raise _damaged(self._model, "a chunk of its stream has no choices")
        for choice in choices:
            if not isinstance(choice, dict):
                raise _damaged(self._model, "a choice of its stream is no object")
            self._take_choice(choice)
        chunk["object"] = "chat.completion.chunk"
        _stamp(chunk, self._id, self._created)
        return chunk  # type: ignore[no-any-return] # a mapping, as was checked

    def _take_choice(self, choice: dict[str, object]) -> None:
        if choice.get("index") is None:
            choice["index"] = 0
        index = choice["index"]
        if type(index) is not int:
            raise _damaged(self._model, "the index of a choice is no number")
        delta = choice.get("delta")
        if delta is None:
            delta = choice["delta"] = {}
        elif not isinstance(delta, dict):
            raise _damaged(self._model, "the delta of a choice is no object")
        _check_said(delta, self._model)
        for call in delta.get("tool_calls") or ():
            # Some providers send each call whole, and without the index that fragments need.
            if type(call.get("index")) is not int:
                call["index"] = self._calls.get(index, 0)
                self._calls[index] = call["index"] + 1
        if reason := choice.setdefault("finish_reason", None):
            if not isinstance(reason, str):
                raise _damaged(self._model, "a finish_reason is no text")
            self._missing.discard(index)

    @property
    def is_complete(self) -> bool:
        return not self._missing

    def end(self) -> None:
        """Take the end of the stream.

        Raises:
            ModelError: it came before the end of the answer.
        """
        if self._missing:
            raise ModelError(
                f"model '{self._model}': the stream of its provider ended before the answer was "
                "complete; send the request again"
            )


def _check_said(said: dict[str, Any], model: str) -> None:
    """Check the shape of a message, or of a part of one; readers of it rely on that."""
    content = said.get("content")
    if isinstance(content, list):
        # Some providers send the parts of a text, of which thoughts may be some.
        said["content"] = "".join(_texts(content))
    elif content is not None and not isinstance(content, str):
        raise _damaged(model, "a content is no text")
    if not isinstance(said.get("refusal"), str | None):
        raise _damaged(model, "a refusal is no text")
    notes = said.get("annotations")
    if notes is not None and not _are_objects(notes):
        raise _damaged(model, "its annotations are no list of objects")
    calls = said.get("tool_calls")
    if calls is None:
        return
    if not _are_objects(calls):
        raise _damaged(model, "its calls of tools are no list of objects")
    for call in calls:
        _check_call(call, model)


def _check_call(call: dict[str, object], model: str) -> None:
    """Check a call of a tool, or a fragment of one; its id and arguments become texts."""
    if not isinstance(call.get("id"), str | None):
        call["id"] = str(call["id"])
    function = call.get("function") or {}
    if not isinstance(function, dict) or not isinstance(function.get("name"), str | None):
        raise _damaged(model, "a call of a tool cannot be read")
    if not isinstance(function.get("arguments"), str | None):
        # Some servers send the object itself.
        function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)


def _fill_in(call: dict[str, Any], model: str) -> None:
    """Fill in what clients need to answer a whole call."""
    if not call.get("id"):
        call["id"] = f"call_{secrets.token_hex(12)}"
    if call.setdefault("type", "function") != "function":
        return
    function = call.get("function") or {}
    if not function.get("name"):
        raise _damaged(model, "a call of a tool has no name")
    if function.get("arguments") is None:
        function["arguments"] = ""


def _stamp(answer: dict[str, object], id_: str, created: int) -> None:
    """Fill in what says which answer this is; a usage that is none is left out."""
    if not isinstance(answer.get("id"), str) or not answer["id"]:
        answer["id"] = id_
    if type(answer.get("created")) is not int or not answer["created"]:
        answer["created"] = created
    if not isinstance(answer.get("usage"), dict | None):
        del answer["usage"]


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _texts(parts: list[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _damaged(model: str, what: str) -> ModelError:
    return ModelError(
        f"model '{model}': the answer of its provider is damaged: {what}; send the request again"
    )
