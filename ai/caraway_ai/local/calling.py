"""A local model that calls tools: asks so that calls can be read, and reads them from its text."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from caraway_ai.local.written_calls import WrittenCallReader, chunks_of, has_calls, with_calls
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatModel, ChatRequest, JsonObject

_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
_STRUCTURED = ("json_object", "json_schema")


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A request with tools, as a small model answers it best.

    `first` may be answered with calls. `second` is sent if it is not: it has the format of the
    answer and no tools, because a model that is given both mixes them.
    """

    names: frozenset[str]
    first: ChatRequest
    second: ChatRequest | None = None


def tool_question(request: ChatRequest) -> ToolQuestion | None:
    """Return a request with tools as questions; None where the model may not call any."""
    functions = {function["name"]: function for function in _functions(request)}
    choice = request.get("tool_choice")
    if not functions or choice == "none":
        return None
    chosen = _chosen(choice)
    if chosen in functions:
        functions = {chosen: functions[chosen]}
    names = frozenset(functions)
    if chosen or choice == "required":
        # The server does not end a forced call; a format does.
        calls = [_call_schema(function) for function in functions.values()]
        schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
        wanted = {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
        return ToolQuestion(names, {**_without_choice(request), "response_format": wanted})
    if (request.get("response_format") or {}).get("type") not in _STRUCTURED:
        return ToolQuestion(names, request)
    first = {name: value for name, value in request.items() if name != "response_format"}
    second = {name: value for name, value in request.items() if name not in _OF_TOOLS}
    return ToolQuestion(names, first, second)


class CallReadingModel:
    """A chat model whose calls of tools are read from the text that it writes."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def check(self) -> None:
        await self._model.check()

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        question = tool_question(request)
        if question is None:
            return await self._model.chat(request)
        answer = with_calls(await self._model.chat(question.first), question.names)
        if question.second is None or has_calls(answer):
            return answer
        return await self._model.chat(question.second)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        question = tool_question(request)
        if question is not None and question.second is not None:
            answer = with_calls(await self._model.chat(question.first), question.names)
            if has_calls(answer):
                for chunk in chunks_of(answer):
                    yield chunk
                return
            request, question = question.second, None
        if question is None:
            async with aclosing(self._model.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        reader = WrittenCallReader(question.names)
        async with aclosing(self._model.stream(question.first)) as chunks:
            async for chunk in chunks:
                for read in reader.read_chunk(chunk):
                    yield read

    async def aclose(self) -> None:
        await self._model.aclose()


def _functions(request: ChatRequest) -> list[JsonObject]:
    tools = [tool.get("function") for tool in request.get("tools") or ()]
    return [
        function
        for function in (*tools, *(request.get("functions") or ()))
        if isinstance(function, dict) and isinstance(function.get("name"), str)
    ]


def _chosen(choice: object) -> str | None:
    """Return the name of the tool that must be called, where there is one."""
    if not isinstance(choice, Mapping):
        return None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None


def _without_choice(request: ChatRequest) -> ChatRequest:
    return {name: value for name, value in request.items() if name != "tool_choice"}


def _call_schema(function: JsonObject) -> JsonObject:
    parameters = function.get("parameters") or {"type": "object"}
    if "$ref" in str(parameters):
        # References are relative to the root of the schema that they are in.
        parameters = {"type": "object"}
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
