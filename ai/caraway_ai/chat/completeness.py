"""Finds answers of providers that are damaged or cut off, which no client of theirs notices."""

import secrets
import time
from collections.abc import Iterator
from typing import Any

from caraway_ai.protocols import ChatChunk, ChatCompletion
from caraway_core.errors import ModelError


def check_completion(answer: Any, model: str) -> ChatCompletion:
    """Return an answer that is complete.

    Raises:
        ModelError: it is not.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices:
        raise _damaged(model, "it has no choices")
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise _damaged(model, "a choice has no message")
        if not choice.get("finish_reason"):
            raise _damaged(model, "a choice has no finish_reason")
        _check_said(choice["message"], model)
    answer["object"] = "chat.completion"
    if not answer.get("id"):
        answer["id"] = f"chatcmpl-{secrets.token_hex(12)}"
    answer.setdefault("created", int(time.time()))
    return answer  # type: ignore[no-any-return] # a mapping, as was checked


class StreamCheck:
    """Sees every chunk of one stream, fills in what clients rely on, and judges its end."""

    def __init__(self, model: str, choices: int) -> None:
        self._model = model
        self._missing = set(range(choices))
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._calls: dict[int, int] = {}

    def take(self, chunk: Any) -> ChatChunk:
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
        if not chunk.get("id"):
            chunk["id"] = self._id
        chunk["object"] = "chat.completion.chunk"
        if not chunk.get("created"):
            chunk["created"] = self._created
        return chunk  # type: ignore[no-any-return] # a mapping, as was checked

    def _take_choice(self, choice: dict[str, Any]) -> None:
        if choice.get("index") is None:
            choice["index"] = 0
        index = choice["index"]
        if type(index) is not int:
            raise _damaged(self._model, "the index of a choice is no number")
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice["delta"] = {}
        _check_said(delta, self._model)
        for call in delta.get("tool_calls") or ():
            # Some providers send each call whole, and without the index that fragments need.
            if type(call.get("index")) is not int:
                call["index"] = self._calls.get(index, 0)
                self._calls[index] = call["index"] + 1
        if choice.setdefault("finish_reason", None):
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
    calls = said.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise _damaged(model, "its calls of tools are no list")
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("function") or {}, dict):
            raise _damaged(model, "a call of a tool cannot be read")


def _texts(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _damaged(model: str, what: str) -> ModelError:
    return ModelError(
        f"model '{model}': the answer of its provider is damaged: {what}; send the request again"
    )
