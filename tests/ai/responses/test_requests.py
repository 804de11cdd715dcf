from typing import Any

import pytest

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.responses.requests import chat_request, input_messages

CALL = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}


def test_items_become_messages() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = {"type": "output_text", "text": "hm", "annotations": []}
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "message", "role": "assistant", "content": [said]},
        CALL,
        {**CALL, "call_id": "2"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"type": "function_call_output", "call_id": "2",
         "output": [{"type": "input_text", "text": "y"}]},
        {"type": "reasoning", "summary": []},
        {"role": "user", "content": [
            {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,AA==",
             "filename": "a.pdf"}]},
    ]  # fmt: skip
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}
    file = {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}
    assert input_messages(items) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "hm", "tool_calls": [call, {**call, "id": "2"}]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "2", "content": "y"},
        {"role": "user", "content": [image, {"type": "file", "file": file}]},
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [{"type": "input_image", "file_id": "f"}]},
        {"role": "user", "content": ["x"]},
        {"type": "function_call", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1"},
    ],
)
def test_an_item_that_cannot_be_translated_is_refused(item: Any) -> None:
    with pytest.raises(RequestFieldError, match=r"input\[0\]"):
        input_messages([item])


def test_settings_are_translated() -> None:
    body = {
        "model": "m", "input": "x", "reasoning": {"effort": "low"}, "text": {"verbosity": "high"},
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": None}],
    }  # fmt: skip
    found = chat_request(body)
    assert found["reasoning_effort"] == "low"
    assert found["verbosity"] == "high"
    assert found["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert found["tools"] == [{"type": "function", "function": {"name": "f", "parameters": {}}}]


@pytest.mark.parametrize(
    ("name", "value", "param"),
    [
        ("max_output_tokens", 0, "max_output_tokens"),
        ("max_output_tokens", "9", "max_output_tokens"),
        ("temperature", 3, "temperature"), ("tools", [{"type": "function"}], "tools[0]"),
        ("tools", [{"type": "function", "name": "f", "parameters": []}], "tools[0].parameters"),
        ("tools", ["f"], "tools[0].type"), ("tool_choice", 5, "tool_choice"),
        ("tool_choice", {"type": "function"}, "tool_choice"), ("truncation", "auto", "truncation"),
        ("text", {"format": "json"}, "text.format"), ("text", {"format": {"type": ["x"]}},
         "text.format"), ("input", [], "input"), ("input", [5], "input[0]"),
        ("input", None, "input"),
        ("input", [{"role": "user", "content": []}], "input"), ("unknown", 1, "unknown"),
        ("input", [{"type": ["message"]}], "input[0].type"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_as_the_caller_wrote_it(name: str, value: Any, param: str) -> None:
    with pytest.raises(RequestFieldError) as caught:
        chat_request({"model": "m", "input": "x", name: value})
    assert caught.value.param == param
    assert "max_completion_tokens" not in caught.value.message
    assert "].function" not in caught.value.message
