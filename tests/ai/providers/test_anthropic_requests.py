from typing import Any

import pytest

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.providers.anthropic_requests import translated

HI = {"role": "user", "content": "hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def test_messages_are_regrouped() -> None:
    request = {
        "messages": [
            {"role": "system", "content": "one"},
            {"role": "developer", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
            {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "t2"}]},
            {"role": "tool", "tool_call_id": "t1", "content": "r1"},
            {"role": "tool", "tool_call_id": "t2", "content": [{"type": "text", "text": "r2"}]},
            {"role": "user", "content": "and?"},
        ]
    }
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
    assert translated(request, "claude") == {
        "model": "claude",
        "max_tokens": 4096,
        "system": "one\n\ntwo",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                             "data": "AAAA"}}]},
            {"role": "assistant", "content": [use, {**use, "id": "t2"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "r1"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "r2"},
                {"type": "text", "text": "and?"}]},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "parallel", "wanted"),
    [
        (None, None, {"type": "auto"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"type": "function", "function": {"name": "f"}}, None, {"type": "tool", "name": "f"}),
    ],
)
def test_the_choice_of_a_tool_is_translated(choice: Any, parallel: Any, wanted: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "strict": True}}]
    body = translated(
        {"messages": [HI], "tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel},
        "claude",
    )
    assert body["tool_choice"] == wanted
    schema = {"type": "object", "properties": {}}
    assert body["tools"] == [
        {"name": "f", "description": "d", "strict": True, "input_schema": schema}
    ]


def test_other_fields_are_translated() -> None:
    schema = {"type": "object"}
    body = translated(
        {
            "messages": [HI], "max_completion_tokens": 9, "temperature": 0.5, "top_k": 3,
            "stop": "END", "user": "u", "reasoning_effort": "low", "n": 1, "logprobs": False,
            "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
        },
        "claude",
    )  # fmt: skip
    del body["messages"], body["model"]
    assert body == {
        "max_tokens": 9, "temperature": 0.5, "top_k": 3, "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"seed": 1}, "seed"),
        ({"logit_bias": {"1": 1}}, "logit_bias"),
        ({"audio": {}}, "audio"),
        ({"min_p": 0.1}, "min_p"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "any"},
         "tool_choice"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
         "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "ftp://x"}}]}]},
         "messages[0].content[0].image_url.url"),
        ({"messages": [HI, {"role": "assistant", "tool_calls": [
            {**CALL, "function": {"name": "f", "arguments": "[1]"}}]}]},
         "messages[1].tool_calls[0].function.arguments"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(more: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestFieldError) as caught:
        translated({"messages": [HI], **more}, "claude")
    assert caught.value.param == param
