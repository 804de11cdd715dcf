"""Calls of workers: the models are tried in turn, until one has begun to answer."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest
from caraway_assist.models.limits import KeyLimitError
from caraway_assist.models.routing import ModelRoute
from caraway_assist.models.states import ModelState
from caraway_assist.models.tallies import ModelTallies
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError

_HELD_CHUNKS = 16
"""Of the start of a stream: some providers say only who speaks, and fail then."""


class Answering(Protocol):
    """Answers chats: a model with its tools, or a worker."""

    async def chat(self, request: ChatRequest) -> ChatCompletion: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]: ...


class BegunModel:
    """A model that remembers whether it has begun to answer.

    After that, no other model may be tried: tools that it requested may have been called.
    """

    def __init__(self, state: ModelState) -> None:
        self._state = state
        self.has_begun = False

    async def check(self) -> None:
        await self._state.callable().chat.check()

    async def aclose(self) -> None:
        """Do nothing: the model serves other calls."""

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        answer = await self._state.callable().chat.chat(request)
        self.has_begun = True
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        chat_chunks: list[ChatChunk] = []
        async with aclosing(self._state.callable().chat.stream(request)) as chunks:
            async for chunk in chunks:
                if not self.has_begun:
                    chat_chunks.append(chunk)
                    if not _says_something(chunk) and len(chat_chunks) < _HELD_CHUNKS:
                        continue
                    self.has_begun = True
                    for each in chat_chunks:
                        yield each
                    continue
                yield chunk
        if not self.has_begun:
            self.has_begun = True
            for each in chat_chunks:
                yield each


Extend = Callable[[ModelState, ChatModel, ChatRequest], tuple[Answering, ChatRequest]]
"""Gives a model its tools, and a request the defaults of the model."""


class WorkerCall:
    """One call of a worker."""

    def __init__(
        self,
        route: ModelRoute,
        states: Mapping[str, ModelState],
        extend: Extend,
        tallies: ModelTallies,
        labels: dict[str, str],
    ) -> None:
        """Take the labels of the call in the task history, which name the model that answers."""
        self._route = route
        self._states = states
        self._extend = extend
        self._tallies = tallies
        self._labels = labels
        self._failures: list[ModelError] = []

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        for name in self._route.choose(self._states):
            begun = self._begin(name)
            try:
                model, full = self._extend(self._states[name], begun, request)
                answer = await model.chat(full)
            except ModelError as exc:
                self._pass_on(name, exc, begun)
            else:
                self._route.succeeded(name)
                return answer
        raise self._every_failure()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        for name in self._route.choose(self._states):
            begun = self._begin(name)
            try:
                model, full = self._extend(self._states[name], begun, request)
                async with aclosing(model.stream(full)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except ModelError as exc:
                self._pass_on(name, exc, begun)
            else:
                self._route.succeeded(name)
                return
        raise self._every_failure()

    def _begin(self, name: str) -> BegunModel:
        self._labels["routed_to"] = name
        self._tallies.worker_requests[self._route.worker.name, name] += 1
        return BegunModel(self._states[name])

    def _pass_on(self, name: str, exc: ModelError, begun: BegunModel) -> None:
        """Note a failure; return if the next model may be tried, else raise it."""
        # The next model may have more room.
        is_too_long = exc.type == "context_length"
        if isinstance(exc, ModelInputError) and not is_too_long:
            raise exc
        # The model answers other keys.
        if not (is_too_long or isinstance(exc, KeyLimitError)):
            self._route.failed(name, exc)
        if begun.has_begun:
            raise exc
        self._tallies.worker_failovers[self._route.worker.name, name] += 1
        self._failures.append(exc)

    def _every_failure(self) -> ModelError:
        if len(self._failures) == 1:
            return self._failures[0]
        told = "; ".join(each.message for each in self._failures)
        message = f"worker '{self._route.worker.name}': every model failed: {told}"
        away = [each for each in self._failures if isinstance(each, ModelAwayError)]
        if away:
            soonest = min(away, key=lambda each: each.retry_after_s)
            return ModelAwayError(message, soonest.type, soonest.retry_after_s)
        last = self._failures[-1]
        if all(isinstance(each, ModelInputError) for each in self._failures):
            return ModelInputError(message, last.type)
        return ModelError(message, last.type)


def _says_something(chunk: ChatChunk) -> bool:
    choices: list[dict[str, Any]] = chunk.get("choices") or []
    return any(
        choice.get("finish_reason")
        or any(value for key, value in (choice.get("delta") or {}).items() if key != "role")
        for choice in choices
    )
