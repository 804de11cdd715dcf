"""Chat answers become responses with the fields that clients of that API read."""

from typing import Any

import openai.types.responses as types
import pytest

from caraway_ai.responses import answers

BODY = {"model": "m", "input": "x"}
NOTE = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0,
                                                 "end_index": 1}}  # fmt: skip


def answered(message: dict[str, Any], reason: str = "stop", **body: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    completion = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2,
                                                 "total_tokens": 3}}  # fmt: skip
    found = answers.answered(answers.begun({**BODY, **body}), completion)
    # The client of this API reads it strictly.
    types.Response.model_validate(found, strict=True)
    return found


def call(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ({"content": "a"}, ["message"]),
        ({"content": None}, ["message"]),
        ({"content": ""}, ["message"]),
        ({"content": "a", "refusal": "b"}, ["message"]),
        ({"content": "a", "tool_calls": [call(), call(id="2")]},
         ["message", "function_call", "function_call"]),
        ({"content": None, "tool_calls": [call()]}, ["function_call"]),
        ({"content": None, "tool_calls": [{"type": "custom", "custom": {}}]}, ["message"]),
        ({"content": "a", "annotations": [NOTE]}, ["message"]),
    ],
)  # fmt: skip
def test_items(message: dict[str, Any], kinds: list[str]) -> None:
    assert [item["type"] for item in answered(message)["output"]] == kinds


def test_what_was_said_is_there() -> None:
    output = answered({"content": "a", "refusal": "no", "annotations": [NOTE]})["output"]
    text, refusal = output[0]["content"]
    assert (text["text"], refusal["refusal"]) == ("a", "no")
    assert text["annotations"] == [{"type": "url_citation", "url": "u", "title": "t",
                                    "start_index": 0, "end_index": 1}]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (call(), ("1", "f", "{}")),
        (call(function={"name": "f", "arguments": {"a": 1}}), ("1", "f", '{"a": 1}')),
        ({"function": {"name": "f"}}, ("call_0", "f", "")),
    ],
)
def test_calls_of_odd_servers(given: Any, expected: tuple[str, str, str]) -> None:
    [item] = answered({"content": None, "tool_calls": [given]})["output"]
    assert (item["call_id"], item["name"], item["arguments"]) == expected


@pytest.mark.parametrize(
    ("reason", "status", "because"),
    [("stop", "completed", None), ("tool_calls", "completed", None),
     ("length", "incomplete", "max_output_tokens"),
     ("content_filter", "incomplete", "content_filter"), ("new", "completed", None)],
)  # fmt: skip
def test_why_it_ended(reason: str, status: str, because: str | None) -> None:
    found = answered({"content": "a"}, reason)
    assert found["status"] == status
    assert found["incomplete_details"] == ({"reason": because} if because else None)


@pytest.mark.parametrize(
    "body",
    [
        {}, {"temperature": 0, "top_p": 0.0, "store": False, "parallel_tool_calls": False},
        {"reasoning": None, "text": None, "tools": None, "metadata": None, "temperature": None},
        {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}, "user": "u",
         "instructions": "i", "max_output_tokens": 5, "tool_choice": "none"},
        {"tools": [{"type": "function", "name": "f", "parameters": {}, "strict": None}],
         "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}},
    ],
)  # fmt: skip
def test_settings_are_told_as_they_were_asked(body: dict[str, Any]) -> None:
    found = answered({"content": "a"}, **body)
    for name in ("temperature", "top_p"):
        assert found[name] == (1.0 if body.get(name) is None else body[name])
    assert found["store"] is (body.get("store") is not False)
    assert found["parallel_tool_calls"] is (body.get("parallel_tool_calls") is not False)
    assert found["tools"] == (body.get("tools") or [])


def test_usage_has_other_names() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12,
              "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": None},
              "completion_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
    found = answers.usage(counts)
    assert (found["input_tokens"], found["output_tokens"], found["total_tokens"]) == (5, 7, 12)
    assert found["input_tokens_details"] == {
        "audio_tokens": 0, "cache_write_tokens": 0, "cached_tokens": 3
    }  # fmt: skip
    assert found["output_tokens_details"]["reasoning_tokens"] == 2
    for odd in (None, 5, "x", [1]):
        details = {"prompt_tokens_details": odd, "completion_tokens_details": odd}
        assert answers.usage(details)["output_tokens_details"]["reasoning_tokens"] == 0
    back = answers.chat_usage(found)
    assert back == {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    assert answers.chat_usage(None) is answers.chat_usage([1]) is None
