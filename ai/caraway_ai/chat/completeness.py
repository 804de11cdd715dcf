"""Finds answers of providers that are damaged or cut off, which no client of theirs notices."""

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
    return answer  # type: ignore[no-any-return] # a mapping, as was checked


class StreamCheck:
    """Sees every chunk of one stream, and judges its end."""

    def __init__(self, model: str, choices: int) -> None:
        self._model = model
        self._missing = set(range(choices))

    def take(self, chunk: Any) -> ChatChunk:
        """Return a chunk of the right shape.

        Raises:
            ModelError: it is not one.
        """
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if choices is None and isinstance(chunk, dict) and "usage" in chunk:
            return {**chunk, "choices": []}
        if not isinstance(choices, list):
            raise _damaged(self._model, "a chunk of its stream has no choices")
        for choice in choices:
            if not isinstance(choice, dict):
                raise _damaged(self._model, "a choice of its stream is no object")
            if choice.get("finish_reason"):
                self._missing.discard(choice.get("index", 0))
        return chunk  # type: ignore[no-any-return] # a mapping, as was checked

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


def _damaged(model: str, what: str) -> ModelError:
    return ModelError(
        f"model '{model}': the answer of its provider is damaged: {what}; send the request again"
    )
