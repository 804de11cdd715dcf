"""Wraps a model so that its calls are limited, counted and recorded."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from caraway_ai.protocols import (
    ChatChunk,
    ChatCompletion,
    ChatModel,
    ChatRequest,
    JsonObject,
    ResponsesModel,
)
from caraway_ai.responses import answers
from caraway_assist.models.limits import ModelLimits
from caraway_assist.models.states import ModelState
from caraway_assist.models.tallies import ModelTallies
from caraway_core.errors import CarawayError, ModelError
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_serving import spans
from caraway_serving.spans import Span

TASK = "ai_completion"
_CHECKED = ("auth", "not_found", "unavailable")


@dataclass(slots=True)
class CallRecord:
    """The facts of one call, until they are recorded."""

    span: Span
    task: str
    labels: dict[str, str]
    input: str = ""
    output: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    error: str | None = None
    code: str | None = None
    started_ns: int = field(default_factory=time.time_ns)
    started_s: float = field(default_factory=time.perf_counter)
    first_s: float | None = None

    def first(self) -> None:
        """Note the time of the first token."""
        if self.first_s is None:
            self.first_s = time.perf_counter()

    def failed(self, exc: BaseException) -> None:
        """Note how the call failed."""
        if isinstance(exc, CarawayError):
            self.code = exc.code if isinstance(exc, ModelError) else type(exc).__name__
            self.error = exc.message
        elif isinstance(exc, asyncio.CancelledError | GeneratorExit):
            self.code, self.error = "cancelled", "the caller went away"
        else:
            self.code, self.error = "internal", "internal error; the log has the cause"

    def take_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.usage = {k: v for k, v in usage.items() if type(v) is int and v >= 0}

    def add_to(self, history: TaskHistory) -> None:
        labels = {**self.labels, **{name: str(count) for name, count in self.usage.items()}}
        if self.first_s is not None:
            labels["first_token_ms"] = f"{(self.first_s - self.started_s) * 1000:.2f}"
        if self.code is not None:
            labels["error_code"] = self.code
        history.add(
            TaskRecord(
                span=self.span,
                task=self.task,
                input=self.input,
                start_ns=self.started_ns,
                end_ns=time.time_ns(),
                error_message=self.error,
                captured_output=self.output,
                labels=labels,
                principal=self.span.principal,
            )
        )


class CallMeter:
    """Limits, counts and records the calls of one model's provider."""

    def __init__(
        self, state: ModelState, limits: ModelLimits, tallies: ModelTallies, history: TaskHistory
    ) -> None:
        self._state = state
        self._limits = limits
        self._tallies = tallies
        self._history = history

    @asynccontextmanager
    async def call(self, *, is_stream: bool) -> AsyncIterator[CallRecord]:
        """Take part in the calls under way; each is one `ai_completion`.

        Raises:
            ModelError: the model is at its limits.
        """
        record = self._begin(is_stream=is_stream)
        try:
            async with self._limits.slot(record.span.principal):
                yield record
        except BaseException as exc:
            self._failed(record, exc)
            raise
        finally:
            self._end(record)

    def _begin(self, *, is_stream: bool) -> CallRecord:
        span = spans.current.get()
        span = span.child() if span is not None else spans.start(None)
        model = self._state.model
        labels = {"model": model.name, "provider": model.provider}
        return CallRecord(span, TASK, {**labels, "stream": str(is_stream).lower()})

    def _failed(self, record: CallRecord, exc: BaseException) -> None:
        record.failed(exc)
        self._tallies.failures[self._state.name, record.code or ""] += 1
        is_ready = self._state.status == "ready"
        if is_ready and isinstance(exc, ModelError) and exc.type in _CHECKED:
            # Wakes the check; if it fails, too, the state has the failure.
            self._state.look.set()

    def _end(self, record: CallRecord) -> None:
        tallies, label = self._tallies, (self._state.name,)
        tallies.requests[label] += 1
        prompt = record.usage.get("prompt_tokens", 0)
        completion = record.usage.get("completion_tokens", 0)
        tallies.prompt_tokens[label] += prompt
        tallies.completion_tokens[label] += completion
        self._limits.count_tokens(prompt + completion, record.span.principal)
        ended_s = time.perf_counter()
        tallies.durations.add(label, (ended_s - record.started_s) * 1000)
        if record.first_s is not None:
            tallies.first_tokens.add(label, (record.first_s - record.started_s) * 1000)
        record.add_to(self._history)


class MeteredModel:
    """A model within its limits."""

    def __init__(self, chat: ChatModel, meter: CallMeter) -> None:
        self._chat = chat
        self._meter = meter

    async def check(self) -> None:
        await self._chat.check()

    async def aclose(self) -> None:
        await self._chat.aclose()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        async with self._meter.call(is_stream=False) as record:
            answer = await self._chat.chat(request)
            record.take_usage(answer.get("usage"))
            return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        async with (
            self._meter.call(is_stream=True) as record,
            aclosing(self._chat.stream(request)) as chunks,
        ):
            async for chunk in chunks:
                record.first()
                if "usage" in chunk:
                    record.take_usage(chunk["usage"])
                yield chunk


class MeteredResponses:
    """The responses API of a provider, within the limits of its model."""

    def __init__(self, model: ResponsesModel, meter: CallMeter) -> None:
        self._model = model
        self._meter = meter

    async def respond(self, request: JsonObject) -> JsonObject:
        async with self._meter.call(is_stream=False) as record:
            answer = await self._model.respond(request)
            record.take_usage(answers.chat_usage(answer.get("usage")))
            return answer

    async def events(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        async with (
            self._meter.call(is_stream=True) as record,
            aclosing(self._model.events(request)) as events,
        ):
            async for event in events:
                if str(event["type"]).endswith(".delta"):
                    record.first()
                response = event.get("response")
                if isinstance(response, dict) and response.get("usage"):
                    record.take_usage(answers.chat_usage(response["usage"]))
                yield event
