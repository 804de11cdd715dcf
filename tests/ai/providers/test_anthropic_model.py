"""Anthropic over the `anthropic` client, against a real server with faults."""

from collections.abc import Iterator

import pytest
from llmock.scenarios import Fail, Reply, StreamFault, ToolCall
from llmock.testing import LLMockServer

from caraway_ai.protocols import ChatModel
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from tests.kit.models import KEY, USER, built, llmock
from tests.kit.scripted_provider import scripted

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with llmock() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server: LLMockServer) -> None:
    server.state.scenarios.clear()


def claude(server: LLMockServer, **params: str) -> ChatModel:
    return built("anthropic", server.base_url("anthropic"), "claude-sonnet", **params)


async def test_whole_and_streamed_answers_agree(server: LLMockServer) -> None:
    model = claude(server)
    await model.check()
    server.state.scenarios.add(Reply(text="a text of some words", times=2))
    whole = await model.chat({"messages": USER})
    chunks = [chunk async for chunk in model.stream({"messages": USER})]
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    assert text == whole["choices"][0]["message"]["content"] == "a text of some words"
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"]["total_tokens"] == sum(
        whole["usage"][name] for name in ("prompt_tokens", "completion_tokens")
    )
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0
    await model.aclose()


async def test_tool_calls_are_translated_both_ways(server: LLMockServer) -> None:
    model = claude(server)
    server.state.scenarios.add(
        Reply(tool_calls=(ToolCall("weather", {"city": "Oslo"}), ToolCall("weather")), times=2)
    )
    request = {"messages": USER, "tools": [TOOL], "tool_choice": "required"}
    whole = (await model.chat(request))["choices"][0]
    assert whole["finish_reason"] == "tool_calls"
    calls: dict[int, dict[str, str]] = {}
    async for chunk in model.stream(request):
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                known = calls.setdefault(call["index"], {"arguments": ""})
                known["name"] = call["function"].get("name", known.get("name"))
                known["arguments"] += call["function"]["arguments"]
    told = [call["function"] for call in whole["message"]["tool_calls"]]
    assert [call["name"] for call in told] == [calls[0]["name"], calls[1]["name"]]
    assert [call["arguments"].replace(" ", "") for call in told] == [
        calls[0]["arguments"].replace(" ", ""), "{}"
    ]  # fmt: skip
    assert calls[1]["arguments"] == "{}"
    message = whole["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
        for call in message["tool_calls"]
    ]
    after = await model.chat({"messages": [*USER, message, *results], "tools": [TOOL]})
    assert after["choices"][0]["message"]["content"]
    await model.aclose()


@pytest.mark.parametrize("fault", ["truncate", "malformed", "disconnect"])
async def test_a_damaged_stream_is_an_error(server: LLMockServer, fault: str) -> None:
    model = claude(server)
    server.state.scenarios.add(StreamFault(fault, after_chunks=3))  # type: ignore[arg-type] # one of its kinds
    got = []
    with pytest.raises(ModelError) as caught:
        async for chunk in model.stream({"messages": USER}):
            got.append(chunk)
    assert got
    assert caught.value.code == "model.failed"
    await model.aclose()


@pytest.mark.parametrize(
    ("fail", "kind", "code"),
    [
        (Fail(401, message=f"invalid x-api-key {KEY}"), ModelError, "model.auth"),
        (Fail(404), ModelError, "model.not_found"),
        (Fail(429, retry_after=4), ModelAwayError, "model.rate_limit"),
        (Fail(529), ModelAwayError, "model.unavailable"),
        (Fail(500), ModelError, "model.failed"),
        (Fail(400, message="prompt is too long: 210000 tokens > 200000 maximum"),
         ModelInputError, "model.context_length"),
    ],
)  # fmt: skip
async def test_a_refusal_becomes_an_error_without_secrets(
    server: LLMockServer, fail: Fail, kind: type[ModelError], code: str
) -> None:
    server.state.scenarios.add(fail)
    model = claude(server)
    with pytest.raises(kind) as caught:
        await model.chat({"messages": USER})
    assert caught.value.code == code
    assert KEY not in caught.value.message
    if code == "model.context_length":
        assert "210000" in caught.value.message
    await model.aclose()


async def test_an_error_in_the_stream_is_told() -> None:
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
    async with scripted("/v1/messages") as provider:
        provider.streams = [[start, error]]
        model = built("anthropic", provider.url, "claude")
        with pytest.raises(ModelAwayError, match="overloaded"):
            async for _ in model.stream({"messages": USER}):
                pass
        provider.streams = [[start]]
        with pytest.raises(ModelError, match="before the answer was complete"):
            async for _ in model.stream({"messages": USER}):
                pass
        await model.aclose()
