"""The models of a scheduler: kept as the manifest says, found by name, and called."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from caraway_ai.chat.preparing import prepared
from caraway_ai.local.sent_files import FileSender
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest
from caraway_ai.tool_loop import LoopTools, ModelWithTools, ResponsesLoop
from caraway_assist.hosting.service import Hosting
from caraway_assist.models.conversations import LIMITS, Conversations
from caraway_assist.models.limits import ModelLimits
from caraway_assist.models.loading import ModelKeeper
from caraway_assist.models.metering import CallMeter, CallRecord
from caraway_assist.models.responses_call import ResponsesCall
from caraway_assist.models.routing import ModelRoute
from caraway_assist.models.states import ModelCaller, ModelState
from caraway_assist.models.tallies import ModelTallies
from caraway_assist.models.worker_calls import Answering, WorkerCall
from caraway_core.concurrency.quotas import QuotaLimits
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import NotFoundError
from caraway_core.manifest import Manifest, Model, SecretResolver
from caraway_core.protocols.state import StateStore
from caraway_scheduler.history.tasks import TaskHistory
from caraway_serving import spans

TASK = "ai_chat"
ToolsOf = Callable[[ModelState, ModelCaller], LoopTools | None]
"""Returns the tools that a model has for one caller."""


class Models:
    """The models of the manifest in force."""

    def __init__(
        self,
        cache_dir: Path,
        history: TaskHistory,
        state: StateStore,
        hosting: Hosting | None = None,
        sender: FileSender | None = None,
        kept_responses: QuotaLimits = LIMITS,
    ) -> None:
        """Without `hosting` there is no cluster, and local models run here.

        Without a sender, executors have the files of models themselves.
        """
        self._hosting = hosting
        self._sender = sender
        self.states: Mapping[str, ModelState] = {}
        self.routes: Mapping[str, ModelRoute] = {}
        """Of the workers that can be named as models."""
        self.tallies = ModelTallies()
        self.conversations = Conversations(state, kept_responses)
        self.tools_of: ToolsOf = lambda _state, _caller: None
        self._cache_dir = cache_dir
        self._history = history
        self._tasks: dict[str, Tasks] = {}
        self._retired = Tasks()
        self.is_closing = False

    async def apply(self, manifest: Manifest, secrets: SecretResolver) -> None:
        """Load the models of a manifest; those that did not change stay as they are."""
        states: dict[str, ModelState] = {}
        for model in manifest.models:
            present = self.states.get(model.name)
            if present is not None and present.model == model:
                states[model.name] = present
            else:
                states[model.name] = ModelState(model)
        for state in states.values():
            state.look.set()  # The tools of the manifest may be others.
        gone = [name for name, state in self.states.items() if states.get(name) is not state]
        new = [state for name, state in states.items() if self.states.get(name) is not state]
        self.states = states
        self.routes = {
            worker.name: route
            if (route := self.routes.get(worker.name)) is not None and route.worker == worker
            else ModelRoute(worker)
            for worker in manifest.workers
            if worker.is_llm
        }
        for name in gone:
            self._retired.spawn(self._tasks.pop(name).aclose(), "retired model", model=name)
        for state in new:
            keeper = ModelKeeper(state, self, secrets, self._cache_dir, self._hosting, self._sender)
            self._tasks[state.name] = Tasks()
            self._tasks[state.name].keep(keeper.run, "model", model=state.name)

    def check_tools(self, state: ModelState) -> None:
        """Check that the tools exist which a model names.

        Raises:
            ModelError: one does not.
        """
        self.tools_of(state, ModelCaller(spans.start(None)))

    async def wait_settled(self) -> None:
        """Wait until each model was tried once."""
        for state in self.states.values():
            await state.settled.wait()

    async def aclose(self) -> None:
        self.is_closing = True
        for tasks in self._tasks.values():
            tasks.cancel()
        for tasks in self._tasks.values():
            await tasks.ended()
        await self._retired.aclose()

    def find(self, name: str) -> ModelState:
        """Return the state of a model.

        Raises:
            NotFoundError: the manifest has no such model.
        """
        try:
            return self.states[name]
        except KeyError:
            raise NotFoundError(f"model '{name}' not found") from None

    @property
    def names(self) -> Sequence[str]:
        """The names that requests can use as their model: models, and workers over them."""
        return [*self.states, *self.routes]

    def members(self, name: str) -> Sequence[Model]:
        """Return the models that may answer for a name.

        Raises:
            NotFoundError: the manifest has no such model or worker.
        """
        if (route := self.routes.get(name)) is not None:
            return [self.states[each.name].model for each in route.worker.models]
        return [self.find(name).model]

    async def chat(self, name: str, request: ChatRequest, caller: ModelCaller) -> ChatCompletion:
        """Answer a chat request, with the tools of the model.

        Raises:
            NotFoundError: the manifest has no such model or worker.
            ModelError: as `ChatModel.chat`.
        """
        record = self._record(name, request.get("messages"), caller)
        chat, full = self._begin(name, request, replace(caller, span=record.span), record.labels)
        token = spans.current.set(record.span)
        try:
            answer = await chat.chat(full)
            record.take_usage(answer.get("usage"))
            if self._history.settings.captures_output:
                record.output = _text(answer.get("choices"))
            return {**answer, "model": name}
        except BaseException as exc:
            record.failed(exc)
            raise
        finally:
            spans.current.reset(token)
            record.add_to(self._history)

    async def stream(
        self, name: str, request: ChatRequest, caller: ModelCaller
    ) -> AsyncGenerator[ChatChunk, None]:
        """Yield the chunks of an answer, as `ChatModel.stream`, with the tools of the model.

        Raises: as `chat`.
        """
        record = self._record(name, request.get("messages"), caller)
        chat, full = self._begin(name, request, replace(caller, span=record.span), record.labels)
        output: list[str] | None = [] if self._history.settings.captures_output else None
        spans.current.set(record.span)
        try:
            async with aclosing(chat.stream(full)) as chunks:
                async for chunk in chunks:
                    record.first()
                    if "usage" in chunk:
                        record.take_usage(chunk["usage"])
                    if output is not None:
                        output += _deltas(chunk)
                    chunk["model"] = name
                    yield chunk
        except BaseException as exc:
            record.failed(exc)
            raise
        finally:
            if output is not None:
                record.output = "".join(output)
            record.add_to(self._history)

    def _begin(
        self, name: str, request: ChatRequest, caller: ModelCaller, labels: dict[str, str]
    ) -> tuple[Answering, ChatRequest]:
        def extend(
            state: ModelState, chat: ChatModel, request: ChatRequest
        ) -> tuple[Answering, ChatRequest]:
            loaded = state.callable()
            full = prepared(request, loaded.defaults, loaded.system_prompt)
            tools = self.tools_of(state, caller)
            return (chat if tools is None else ModelWithTools(chat, tools)), full

        if (route := self.routes.get(name)) is not None:
            return WorkerCall(route, self.states, extend, self.tallies, labels), request
        state = self.find(name)
        return extend(state, state.callable().chat, request)

    def responses(self, name: str, caller: ModelCaller) -> ResponsesCall | None:
        """Return a call by the responses API of a provider; None if the model has none.

        A worker may go from one model to another, so its responses are chats.

        Raises:
            NotFoundError: the manifest has no such model or worker.
            ModelError: the model is not loaded.
        """
        if name in self.routes:
            return None
        state = self.find(name)
        loaded = state.callable()
        if loaded.responses is None:
            return None
        record = self._record(name, None, caller)
        tools = self.tools_of(state, replace(caller, span=record.span))
        return ResponsesCall(loaded, ResponsesLoop(loaded.responses, tools), record, self._history)

    def _record(self, name: str, given: object, caller: ModelCaller) -> CallRecord:
        record = CallRecord(caller.span.child(), TASK, {"model": name})
        if self._history.settings.captures_output:
            record.input = _text(given)
        return record

    def meter(self, state: ModelState, limits: ModelLimits) -> CallMeter:
        """Return what counts and limits the calls of a model."""
        return CallMeter(state, limits, self.tallies, self._history)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _deltas(chunk: ChatChunk) -> list[str]:
    found = (choice.get("delta", {}).get("content") for choice in chunk.get("choices", ()))
    return [text for text in found if isinstance(text, str)]
