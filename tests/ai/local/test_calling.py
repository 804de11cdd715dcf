"""The prompt of a local model for a request with tools, and the reading of its text."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from caraway_ai.local.calling import CallReadingModel, tool_question
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest, JsonObject

CALL = '{"name": "sql", "arguments": {"query": "SELECT 1"}}'
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}
SQL = {"type": "function", "function": {"name": "sql", "parameters": PARAMETERS}}
WEATHER = {"type": "function", "function": {"name": "weather"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "row", "schema": {"type": "object"}}}
MESSAGES = [{"role": "user", "content": "How many rows are there?"}]


class ScriptedTexts:
    """A model that writes the given texts one after the other, and keeps the requests."""

    def __init__(self, *texts: str) -> None:
        self.requests: list[ChatRequest] = []
        self.is_closed = False
        self._texts = list(texts)

    async def check(self) -> None:
        raise ConnectionError("away")

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        self.requests.append(request)
        message = {"role": "assistant", "content": self._texts.pop(0)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "1", "object": "chat.completion", "choices": [choice]}

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        self.requests.append(request)
        for letter in self._texts.pop(0):
            yield {"id": "1", "choices": [
                {"index": 0, "delta": {"content": letter}, "finish_reason": None}
            ]}  # fmt: skip
        yield {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    async def aclose(self) -> None:
        self.is_closed = True


def request(**fields: Any) -> JsonObject:
    return {"messages": MESSAGES, **fields}


async def streamed(model: CallReadingModel, asked: JsonObject) -> tuple[str, list[JsonObject]]:
    choices = [choice async for chunk in model.stream(asked) for choice in chunk["choices"]]
    content = "".join(choice["delta"].get("content") or "" for choice in choices)
    return content, [c for choice in choices for c in choice["delta"].get("tool_calls") or ()]


@pytest.mark.parametrize(
    "fields",
    [{}, {"tools": []}, {"tools": [SQL], "tool_choice": "none"}, {"response_format": SCHEMA}],
)
async def test_a_request_without_tools_is_sent_as_it_is(fields: JsonObject) -> None:
    assert tool_question(request(**fields)) is None
    texts = ScriptedTexts(CALL, CALL)
    model = CallReadingModel(texts)
    answer = await model.chat(request(**fields))
    assert answer["choices"][0]["message"]["content"] == CALL
    assert await streamed(model, request(**fields)) == (CALL, [])
    assert texts.requests == [request(**fields)] * 2


async def test_a_written_call_is_read() -> None:
    model = CallReadingModel(ScriptedTexts(CALL, CALL))
    asked = request(tools=[SQL, WEATHER])
    message = (await model.chat(asked))["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["sql"]
    content, calls = await streamed(model, asked)
    assert content == "" and [call["function"]["name"] for call in calls] == ["sql"]


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_format_is_asked_for_after_the_tools(is_stream: bool) -> None:
    asked = request(tools=[SQL], response_format=SCHEMA, tool_choice="auto")
    for texts, sent in ((ScriptedTexts(CALL), 1), (ScriptedTexts("none", '{"n": 1}'), 2)):
        model = CallReadingModel(texts)
        if is_stream:
            content, calls = await streamed(model, asked)
        else:
            message = (await model.chat(asked))["choices"][0]["message"]
            content, calls = message["content"] or "", message.get("tool_calls") or []
        assert (content, len(calls)) == (("", 1) if sent == 1 else ('{"n": 1}', 0))
        first, *second = texts.requests
        assert "response_format" not in first and first["tools"] == [SQL]
        assert second == [request(response_format=SCHEMA)][: sent - 1]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"sql", "weather"}),
        ({"type": "function", "function": {"name": "weather"}}, {"weather"}),
    ],
)
def test_a_call_that_must_be_made_is_a_format(choice: Any, names: set[str]) -> None:
    question = tool_question(request(tools=[SQL, WEATHER], tool_choice=choice))
    assert question is not None and question.second is None
    assert question.names == names
    assert "tool_choice" not in question.first
    schema = question.first["response_format"]["json_schema"]["schema"]
    calls = schema.get("anyOf", [schema])
    assert {call["properties"]["name"]["const"] for call in calls} == names
    assert all(call["required"] == ["name", "arguments"] for call in calls)


def test_parameters_with_references_are_any_object() -> None:
    parameters = {"$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}
    tool = {"type": "function", "function": {"name": "sql", "parameters": parameters}}
    question = tool_question(request(tools=[tool], tool_choice="required"))
    assert question is not None
    written = json.dumps(question.first["response_format"])
    assert "$ref" not in written and "sql" in written


async def test_the_rest_is_the_model_s_own() -> None:
    texts = ScriptedTexts()
    model = CallReadingModel(texts)
    with pytest.raises(ConnectionError):
        await model.check()
    await model.aclose()
    assert texts.is_closed
