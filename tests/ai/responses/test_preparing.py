"""Requests of the responses API with what the manifest sets for a model."""

import copy
from typing import Any

import pytest

from caraway_ai.responses.preparing import prepared

CHAT_TOOL = {"type": "function", "function": {"name": "f"}}
CHAT_FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("defaults", "request_", "added"),
    [
        ({}, {}, {}),
        ({"temperature": 0.5}, {}, {"temperature": 0.5}),
        ({"temperature": 0.5}, {"temperature": 0.0}, {"temperature": 0.0}),
        ({"temperature": 0.5}, {"temperature": None}, {"temperature": 0.5}),
        ({"seed": 7, "stop": "x", "n": 2}, {}, {}),
        ({"max_tokens": 9}, {}, {"max_output_tokens": 9}),
        ({"max_tokens": 9}, {"max_output_tokens": 3}, {"max_output_tokens": 3}),
        ({"max_tokens": 9, "max_completion_tokens": 5}, {}, {"max_output_tokens": 5}),
        ({"tool_choice": "auto"}, {}, {"tool_choice": "auto"}),
        ({"tool_choice": CHAT_TOOL}, {}, {"tool_choice": {"type": "function", "name": "f"}}),
        ({"tool_choice": "auto"}, {"tool_choice": "none"}, {"tool_choice": "none"}),
        ({"reasoning_effort": "low"}, {}, {"reasoning": {"effort": "low"}}),
        (
            {"reasoning_effort": "low"},
            {"reasoning": {"summary": "auto"}},
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        (
            {"reasoning_effort": "low"},
            {"reasoning": {"effort": "high"}},
            {"reasoning": {"effort": "high"}},
        ),
        ({"verbosity": "low"}, {}, {"text": {"verbosity": "low"}}),
        (
            {"verbosity": "low"},
            {"text": {"verbosity": "high", "format": {"type": "text"}}},
            {"text": {"verbosity": "high", "format": {"type": "text"}}},
        ),
        (
            {"response_format": CHAT_FORMAT},
            {},
            {"text": {"format": {"type": "json_schema", "name": "n",
                                 "schema": {"type": "object"}}}},
        ),
        (
            {"response_format": {"type": "json_object"}},
            {},
            {"text": {"format": {"type": "json_object"}}},
        ),
        (
            {"response_format": CHAT_FORMAT},
            {"text": {"format": {"type": "text"}}},
            {"text": {"format": {"type": "text"}}},
        ),
        ({}, {"text": {}}, {"text": {}}),
        ({}, {"text": {"verbosity": "low"}}, {"text": {"verbosity": "low"}}),
    ],
)  # fmt: skip
def test_defaults_fill_what_a_request_leaves_open(
    defaults: dict[str, Any], request_: dict[str, Any], added: dict[str, Any]
) -> None:
    request = {"model": "m", "input": "hi", **request_}
    before = copy.deepcopy((request, defaults))
    found = prepared(request, defaults, None)
    assert found == {"model": "m", "input": "hi", **added}
    assert (request, defaults) == before, "the request and the manifest stay as they were"


@pytest.mark.parametrize("prompt", [None, ""])
def test_without_a_system_prompt_the_input_stays(prompt: str | None) -> None:
    for given in ("hi", [{"role": "user", "content": "hi"}], []):
        assert prepared({"input": given}, {}, prompt)["input"] == given


def test_the_system_prompt_comes_first() -> None:
    first = {"role": "system", "content": "be brief"}
    user = {"role": "user", "content": "hi"}
    assert prepared({"input": "hi"}, {}, "be brief")["input"] == [first, user]
    items = [{"role": "system", "content": "own"}, user]
    assert prepared({"input": items}, {}, "be brief")["input"] == [first, *items]
    assert items == [{"role": "system", "content": "own"}, user]
    assert prepared({"input": []}, {}, "be brief")["input"] == [first]


def test_null_is_what_was_left_out() -> None:
    request = {"input": "hi", "text": None, "reasoning": None, "tools": None}
    assert prepared(request, {"reasoning_effort": "low"}, None) == {
        "input": "hi",
        "reasoning": {"effort": "low"},
    }


@pytest.mark.parametrize("field", ["reasoning", "text"])
def test_a_field_inside_that_is_null_is_filled(field: str) -> None:
    defaults = {"reasoning_effort": "low", "verbosity": "low"}
    inside = {"reasoning": {"effort": None}, "text": {"verbosity": None}}[field]
    found = prepared({"input": "hi", field: inside}, defaults, None)
    assert found["reasoning"] == {"effort": "low"}
    assert found["text"] == {"verbosity": "low"}
