"""A model with tools, which is a model: it answers after its calls of tools."""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest, JsonObject
from caraway_ai.tool_loop import calls as tool_calls
from caraway_ai.tool_loop.calls import StreamedCalls, ToolCall
from caraway_ai.tool_loop.rounds import ToolRounds
from caraway_ai.tool_loop.running import LoopTools

_LONGEST_PROGRESS = 300


class ModelWithTools:
    """Wraps a model. Tools of the request itself are left to the caller, as without tools."""

    def __init__(self, chat: ChatModel, tools: LoopTools) -> None:
        self._chat = chat
        self._tools = tools

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
            own = [call for call in called if rounds.runs(call.name)]
            if len(own) < len(called):
                return _only_others(answer, rounds.own)
            if not own:
                return answer
            rounds.check_end()
            await self._tools.run_calls(rounds, rounds.take_calls(message.get("content"), own))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """Yield the chunks of an answer; text before calls of tools is part of it.

        Raises: as `chat`.
        """
        rounds = self._rounds(request)
        stamp: JsonObject = {}
        while True:
            streamed, text, chat_chunks = StreamedCalls(rounds.runs), list[str](), list[ChatChunk]()
            async with aclosing(self._chat.stream(rounds.next_request())) as chunks:
                async for chunk in chunks:
                    stamp = stamp or {"id": chunk["id"], "created": chunk["created"]}
                    is_first = rounds.round_count == 0
                    if passed := _passed(chunk, streamed, rounds, text, chat_chunks, is_first):
                        yield {**passed, **stamp}
            called = streamed.calls
            if streamed.has_others or not called:
                for chunk in chat_chunks:
                    yield {**chunk, **stamp}
                if rounds.usage:
                    yield _usage(stamp, rounds.usage)
                return
            rounds.check_end()
            kept = rounds.take_calls("".join(text), called)
            if self._tools.settings.shows_progress:
                for call in kept:
                    yield _progress(stamp, call)
            await self._tools.run_calls(rounds, kept)

    def _rounds(self, request: ChatRequest) -> ToolRounds:
        return ToolRounds(request, self._tools.definitions, self._tools.settings.most_rounds)


def _only_others(answer: ChatCompletion, own: Collection[str]) -> ChatCompletion:
    """Return an answer without the calls of the runtime's tools, which the caller cannot run.

    They are known by their names: some servers give calls no ids, or all of them the same.
    """
    choice = answer["choices"][0]
    message = choice["message"]
    kept = [
        call
        for call in message["tool_calls"]
        if (call.get("function") or {}).get("name") not in own
    ]
    shown = {**choice, "message": {**message, "tool_calls": kept}}
    return {**answer, "choices": [shown]}


def _passed(
    chunk: ChatChunk,
    streamed: StreamedCalls,
    rounds: ToolRounds,
    text: list[str],
    chunks: list[ChatChunk],
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
    if passing := streamed.collect_fragments(delta.pop("tool_calls", None)):
        delta["tool_calls"] = passing
    made = {**chunk, "choices": [{**choice, "delta": delta}]}
    if choice.get("finish_reason"):
        chunks.append(made)
        return None
    return made if delta else None


def _usage(stamp: JsonObject, usage: JsonObject) -> ChatChunk:
    return {"object": "chat.completion.chunk", "model": "", **stamp, "choices": [], "usage": usage}


def _progress(stamp: JsonObject, call: ToolCall) -> ChatChunk:
    told = f"\n[{call.name} {call.arguments[:_LONGEST_PROGRESS]}]\n"
    choice = {"index": 0, "delta": {"content": told}, "finish_reason": None}
    return {"object": "chat.completion.chunk", "model": "", **stamp, "choices": [choice]}
