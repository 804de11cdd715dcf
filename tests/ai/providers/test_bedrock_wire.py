"""Chats become arguments of Converse, and its answers become those of the chat wire."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
import pytest
from botocore.validate import validate_parameters
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.providers import bedrock_wire
from caraway_ai.providers.bedrock_wire import ConverseStream

USER = {"role": "user", "content": "hi"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
TOOL = {"type": "function", "function": {"name": "f", "description": "d",
                                         "parameters": {"type": "object"}}}  # fmt: skip


def call(id_: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.fixture(scope="module")
def shape() -> Any:
    client = boto3.client("bedrock-runtime", region_name="us-east-1", aws_access_key_id="a",
                          aws_secret_access_key="b")  # fmt: skip
    return client.meta.service_model.operation_model("Converse").input_shape


@pytest.mark.parametrize(
    "request_",
    [
        {"messages": [USER]},
        {"messages": [{"role": "system", "content": "s"}, USER], "temperature": 0, "top_p": 1,
         "max_tokens": 5, "stop": "x", "top_k": 4},
        {"messages": [USER], "stop": ["a", "b"], "max_completion_tokens": 7, "n": 1},
        {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "what"},
            {"type": "image_url", "image_url": {"url": PIXEL}}]}]},
        {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [
            call("1", '{"a": [1, null, 2.5]}'), call("2")]},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
            {"role": "tool", "tool_call_id": "2", "content": "y"}, USER], "tools": [TOOL]},
        {"messages": [USER], "tools": [TOOL], "tool_choice": "required"},
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": "g"}}],
         "tool_choice": {"type": "function", "function": {"name": "g"}},
         "parallel_tool_calls": True},
    ],
)  # fmt: skip
def test_arguments_are_those_that_the_client_takes(request_: dict[str, Any], shape: Any) -> None:
    found = bedrock_wire.translated(request_, "anthropic.claude")
    assert found["modelId"] == "anthropic.claude"
    validate_parameters(found, shape)


def test_what_the_user_says_to_results_is_one_turn() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": "ok", "tool_calls": [call("1"), call("2")]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "y"}]},
        {"role": "user", "content": "and?"},
    ]
    found = bedrock_wire.translated({"messages": messages}, "m")["messages"]
    assert [each["role"] for each in found] == ["user", "assistant", "user"]
    assert found[1]["content"] == [
        {"text": "ok"},
        {"toolUse": {"toolUseId": "1", "name": "f", "input": {}}},
        {"toolUse": {"toolUseId": "2", "name": "f", "input": {}}},
    ]
    assert found[2]["content"] == [
        {"toolResult": {"toolUseId": "1", "content": [{"text": "x"}]}},
        {"toolResult": {"toolUseId": "2", "content": [{"text": "y"}]}},
        {"text": "and?"},
    ]


def part(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [fields]}]}


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        ({"messages": [USER], "n": 2}, "n"),
        ({"messages": [USER], "seed": 1}, "seed"),
        ({"messages": [USER], "parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"messages": [USER], "response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [USER], "stop": 5}, "stop"),
        ({"messages": [{"role": "system", "content": "s"}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}, USER]}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [USER], "tools": [TOOL], "tool_choice": "none"}, "tool_choice"),
        ({"messages": [USER], "tools": [TOOL], "tool_choice": ["auto"]}, "tool_choice"),
        ({"messages": [USER], "tools": [{"type": "web"}]}, "tools[0].type"),
        ({"messages": [USER, {"role": "assistant", "content": None,
                              "tool_calls": [call("1", "[1]")]}]},
         "messages[1].tool_calls[0].function.arguments"),
        (part(type="image_url", image_url=PIXEL), "messages[0].content[0].image_url"),
        (part(type="image_url"), "messages[0].content[0].image_url"),
        (part(type="image_url", image_url={"url": 5}), "messages[0].content[0].image_url.url"),
        (part(type="image_url", image_url={"url": "https://x/y.png"}),
         "messages[0].content[0].image_url.url"),
        (part(type="image_url", image_url={"url": "data:image/tiff;base64,AA=="}),
         "messages[0].content[0].image_url.url"),
        (part(type="input_audio", input_audio={}), "messages[0].content[0].type"),
        ({"messages": [USER, {"role": "tool", "tool_call_id": "1",
                              "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}]},
         "messages[1].content[0]"),
    ],
)  # fmt: skip
def test_what_converse_lacks_is_refused(request_: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestFieldError) as caught:
        bedrock_wire.translated(request_, "m")
    assert caught.value.param == param


def answer(content: list[Any], reason: str = "end_turn", **usage: int) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason, "usage": usage}  # fmt: skip


def test_an_answer() -> None:
    use = {"toolUseId": "1", "name": "f", "input": {"a": "é"}}
    content = [{"text": "a"}, {"reasoningContent": {}}, {"text": "b"}, {"toolUse": use}]
    found = bedrock_wire.completion(
        answer(content, "tool_use", inputTokens=3, outputTokens=4, cacheReadInputTokens=2)
    )
    choice = check_completion(found, "m")["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "ab"
    function = choice["message"]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"a": "é"}
    assert found["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
                              "prompt_tokens_details": {"cached_tokens": 2}}  # fmt: skip


@pytest.mark.parametrize(
    "damaged",
    [{}, {"output": {}}, answer([5]), answer([{"text": 5}]), answer([{"toolUse": {}}]),
     {**answer([]), "stopReason": []}, {"output": {"message": {"content": []}}, "usage": {}},
     {**answer([]), "output": {"message": {"content": None}}}],
)  # fmt: skip
def test_a_damaged_answer_raises_what_its_reader_catches(damaged: Any) -> None:
    with pytest.raises((KeyError, TypeError)):
        bedrock_wire.completion(damaged)


PARTS = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
    ),
    max_size=6,
)


def events_of(parts: Sequence[str | dict[str, Any]], cut: int) -> list[dict[str, Any]]:
    """Send parts of an answer as Converse does: a text, or a call in fragments."""
    found: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, each in enumerate(parts):
        at = {"contentBlockIndex": index}
        if isinstance(each, dict):
            use = {"toolUseId": f"id{index}", "name": f"f{index}"}
            found.append({"contentBlockStart": {**at, "start": {"toolUse": use}}})
            text = json.dumps(each) if each else ""
            deltas: list[Any] = [
                {"toolUse": {"input": text[i : i + cut]}} for i in range(0, len(text), cut)
            ]
        else:
            deltas = [{"text": each[i : i + cut]} for i in range(0, len(each), cut)]
        found += [{"contentBlockDelta": {**at, "delta": delta}} for delta in deltas]
        found.append({"contentBlockStop": at})
    found.append({"messageStop": {"stopReason": "tool_use"}})
    return [*found, {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 2}}}]


def collected(chunks: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[str, str, str]]]:
    """Put chunks together as clients do: by the index of each call."""
    text, calls = "", dict[int, list[str]]()
    for chunk in chunks:
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for call_ in choice["delta"].get("tool_calls") or ():
                known = calls.setdefault(call_["index"], ["", "", ""])
                known[0] += call_.get("id", "")
                known[1] += call_["function"].get("name", "")
                known[2] += call_["function"].get("arguments", "")
    return text, [(a, b, c) for _, (a, b, c) in sorted(calls.items())]


@given(PARTS, st.integers(1, 4))
def test_a_stream_says_what_the_whole_answer_says(parts: list[Any], cut: int) -> None:
    check, told = StreamCheck("m", 1), ConverseStream()
    chunks = [
        check.check_chunk(each)
        for event in events_of(parts, cut)
        for each in told.chunks_of_event(event)
    ]
    check.end()
    text, calls = collected(chunks)
    content = [
        {"text": each}
        if isinstance(each, str)
        else {"toolUse": {"toolUseId": f"id{n}", "name": f"f{n}", "input": each}}
        for n, each in enumerate(parts)
    ]
    whole = bedrock_wire.completion(answer(content, "tool_use"))["choices"][0]["message"]
    assert text == (whole["content"] or "")
    assert [(a, b, json.loads(c)) for a, b, c in calls] == [
        (each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in whole.get("tool_calls", ())
    ]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] == 3


def test_unknown_events_say_nothing() -> None:
    told = ConverseStream()
    event: dict[str, Any]
    for event in ({"new": {}}, {"contentBlockDelta": {"delta": {"image": {}}}}, {}):
        assert list(told.chunks_of_event(event)) == []
