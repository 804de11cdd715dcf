"""A model with tools, which is a model: it answers after it has called what it needed."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest, JsonObject
from caraway_ai.tool_loop import calls as tool_calls
from caraway_ai.tool_loop.calls import StreamedCalls, ToolCall
from caraway_ai.tool_loop.rounds import ToolRounds
from caraway_ai.tools import arguments as arguments_
from caraway_ai.tools import bounding
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.selecting import ToolSelection
from caraway_core.errors import CarawayError, ModelError

logger = logging.getLogger(__name__)
DEFAULT_ROUNDS = 10
_AT_ONCE = 8
_LONGEST_PROGRESS = 300


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The limits of a loop. Results are smaller than over HTTP, for a model reads all of them.

    With `shows_progress`, the calls are told in the text of a stream.
    """

    most_rounds: int = DEFAULT_ROUNDS
    rows: int = 200
    bytes: int = 32 * 1024
    shows_progress: bool = False


class ModelWithTools:
    """Wraps a model. Tools of the request itself are left to the caller, as without tools."""

    def __init__(
        self,
        chat: ChatModel,
        selection: ToolSelection,
        caller: Callable[[], ToolCaller],
        settings: LoopSettings | None = None,
    ) -> None:
        self._chat = chat
        self._selection = selection
        self._caller = caller
        self._settings = settings or LoopSettings()

    async def check(self) -> None:
        """Check that the model can be called; see `ChatModel`."""
        await self._chat.check()

    async def aclose(self) -> None:
        """Release the model."""
        await self._chat.aclose()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        """Answer a request, with as many calls of tools as it needs.

        Raises:
            ModelError: as `ChatModel.chat`, or the model did not stop to call tools.
        """
        rounds = self._rounds(request)
        while True:
            answer = await self._chat.chat(rounds.next_request())
            rounds.take_usage(answer.get("usage"))
            if rounds.usage:
                answer = {**answer, "usage": rounds.usage}
            choice = answer["choices"][0]
            message = choice["message"]
            called = tool_calls.of_message(message)
            own = [call for call in called if call.name in rounds.own]
            if len(own) < len(called):
                return _only_others(answer, frozenset(call.id for call in own))
            if not own:
                return answer
            self._check_end(rounds)
            await self._run(rounds, rounds.take_calls(message.get("content"), own))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """Yield the chunks of an answer; text before calls of tools is part of it.

        Raises: as `chat`.
        """
        rounds = self._rounds(request)
        stamp: JsonObject = {}
        while True:
            streamed, text, held = StreamedCalls(rounds.own), list[str](), list[ChatChunk]()
            async with aclosing(self._chat.stream(rounds.next_request())) as chunks:
                async for chunk in chunks:
                    stamp = stamp or {"id": chunk["id"], "created": chunk["created"]}
                    is_first = rounds.round_count == 0
                    if passed := _passed(chunk, streamed, rounds, text, held, is_first):
                        yield {**passed, **stamp}
            called = streamed.calls
            if streamed.has_others or not called:
                for chunk in held:
                    yield {**chunk, **stamp}
                if rounds.usage:
                    yield _usage(stamp, rounds.usage)
                return
            self._check_end(rounds)
            kept = rounds.take_calls("".join(text), called)
            if self._settings.shows_progress:
                for call in kept:
                    yield _progress(stamp, call)
            await self._run(rounds, kept)

    def _rounds(self, request: ChatRequest) -> ToolRounds:
        return ToolRounds(request, self._selection.definitions, self._settings.most_rounds)

    def _check_end(self, rounds: ToolRounds) -> None:
        if rounds.is_last:
            raise ModelError(
                f"the model called tools {rounds.round_count} times in a row and was told to "
                "answer, but called again; ask for less, or raise its tool_recursion_limit"
            )

    async def _run(self, rounds: ToolRounds, wanted: Sequence[ToolCall]) -> None:
        """Run calls concurrently; results are in the order of the calls."""
        room = asyncio.Semaphore(_AT_ONCE)
        refusals = [rounds.refusal(call) for call in wanted]

        async def run(call: ToolCall, refusal: str | None) -> str:
            async with room:
                return _error(refusal) if refusal else await self._result(call)

        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(run(call, refusal))
                for call, refusal in zip(wanted, refusals, strict=True)
            ]
        for call, result in zip(wanted, running, strict=True):
            rounds.take_result(call, result.result())

    async def _result(self, call: ToolCall) -> str:
        """Return the text that a model reads; a failure is a text, too."""
        limits = ToolLimits(self._settings.rows, self._settings.bytes)
        try:
            arguments = arguments_.parse(call.arguments)
            result = await self._selection.call(call.name, arguments, self._caller())
            if isinstance(result, dict) and result.get("is_truncated"):
                result = result["rows"]
                kept = bounding.bounded(call.name, result, limits)
                result = kept if isinstance(kept, dict) else bounding.cut(kept)
            else:
                result = bounding.bounded(call.name, result, limits)
        except CarawayError as exc:
            return _error(exc.message)
        except Exception:
            logger.exception("tool failed", extra={"tool": call.name})
            return _error(f"tool '{call.name}' failed; try another way")
        return _dumped(result)


def _only_others(answer: ChatCompletion, own: frozenset[str]) -> ChatCompletion:
    """Return an answer without the calls of the runtime's tools, which the caller cannot run."""
    choice = answer["choices"][0]
    message = choice["message"]
    kept = [call for call in message["tool_calls"] if call.get("id") not in own]
    shown = {**choice, "message": {**message, "tool_calls": kept}}
    return {**answer, "choices": [shown]}


def _passed(
    chunk: ChatChunk,
    streamed: StreamedCalls,
    rounds: ToolRounds,
    text: list[str],
    held: list[ChatChunk],
    is_first: bool,
) -> ChatChunk | None:
    """Take one chunk; return what of it a client sees now. The end of an answer is held back."""
    if "usage" in chunk:
        rounds.take_usage(chunk["usage"])
        chunk = {name: value for name, value in chunk.items() if name != "usage"}
    if not chunk["choices"]:
        return None
    choice = chunk["choices"][0]
    delta = dict(choice.get("delta") or {})
    if not is_first:
        delta.pop("role", None)
    if isinstance(delta.get("content"), str):
        text.append(delta["content"])
    if passing := streamed.take(delta.pop("tool_calls", None)):
        delta["tool_calls"] = passing
    made = {**chunk, "choices": [{**choice, "delta": delta}]}
    if choice.get("finish_reason"):
        held.append(made)
        return None
    return made if delta else None


def _usage(stamp: JsonObject, usage: JsonObject) -> ChatChunk:
    return {"object": "chat.completion.chunk", "model": "", **stamp, "choices": [], "usage": usage}


def _progress(stamp: JsonObject, call: ToolCall) -> ChatChunk:
    told = f"\n[{call.name} {call.arguments[:_LONGEST_PROGRESS]}]\n"
    choice = {"index": 0, "delta": {"content": told}, "finish_reason": None}
    return {"object": "chat.completion.chunk", "model": "", **stamp, "choices": [choice]}


def _error(message: str) -> str:
    return _dumped({"error": message})


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
