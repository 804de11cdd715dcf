"""Requests of the messages API as chats."""

from typing import Any

import pytest

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.messages import requests

USER = {"role": "user", "content": "Hi"}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages or (USER,)), **fields}


def use(id_: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "f", "input": {"a": 1}, **fields}


def result(id_: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"system": "Be brief"}, None),
        ({"thinking": {"type": "disabled"}}, {}),
        ({"thinking": {"type": "adaptive"}}, {"thinking": {"type": "adaptive"}}),
        ({"top_k": 4, "top_p": 0.5, "speed": "fast"}, {"top_k": 4, "top_p": 0.5, "speed": "fast"}),
        ({"service_tier": "standard_only"}, {"service_tier": "default"}),
        ({"cache_control": {"type": "ephemeral"}, "metadata": None}, {}),
        ({"tool_choice": {"type": "any"}}, {}),
        ({"output_config": {"effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            {"response_format": {"type": "json_schema", "json_schema": {
                "name": "answer", "schema": {"type": "object"}, "strict": True}}},
        ),
    ],
)  # fmt: skip
def test_fields_become_those_of_a_chat(
    fields: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    chat = requests.chat_request(body(**fields))
    messages = chat.pop("messages")
    assert chat == {"model": "m", "max_completion_tokens": 9, **(expected or {})}
    assert messages[-1] == USER
    assert (messages[0]["role"] == "system") is (expected is None)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, "auto"),
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_the_choice_of_tools(choice: Any, expected: Any) -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}, "strict": True}
    chat = requests.chat_request(body(tools=[tool], tool_choice=choice))
    assert chat["tool_choice"] == expected
    function = {"name": "f", "parameters": {"type": "object"}, "strict": True}
    assert chat["tools"] == [{"type": "function", "function": function}]


def test_blocks_become_parts_and_results_messages_of_their_own() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    pdf = {"type": "document", "title": "t", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "aGk="}}  # fmt: skip
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    chat = requests.chat_request(
        body(
            {"role": "user", "content": [{"type": "text", "text": "See"}, image, pdf]},
            {"role": "assistant", "content": [thought, use("a"), use("b")]},
            {"role": "user", "content": [result("a", content="1"), result("b", is_error=True)]},
            {"role": "system", "content": "Be brief"},
            {"role": "assistant", "content": [thought]},
        )
    )
    call = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert chat["messages"] == [
        {"role": "user", "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=",
                                      "filename": "t"}},
        ]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", **call},
                                                              {"id": "b", **call}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "error"},
        {"role": "system", "content": "Be brief"},
        {"role": "assistant", "content": ""},
    ]  # fmt: skip


def content(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return body({"role": role, "content": list(blocks)})


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ([], ""),
        (body(model=""), "model"),
        ({**body(), "max_tokens": None}, "max_tokens"),
        (body(max_tokens=True), "max_tokens"),
        (body(mcp_servers=[{}]), "mcp_servers"),
        (body(system=[{"type": "image"}]), "system[0]"),
        (body(system=4), "system"),
        (body(temperature=9), "temperature"),
        (body(thinking=True), "thinking"),
        ({**body(), "messages": []}, "messages"),
        (body("x"), "messages[0].role"),
        (body({"role": "robot", "content": "x"}), "messages[0].role"),
        (body({"role": "user"}), "messages[0].content"),
        (content(), "messages[0].content"),
        (content("x"), "messages[0].content[0]"),
        (content({"type": "text"}), "messages[0].content[0]"),
        (content({"type": "image"}), "messages[0].content[0].source"),
        (content({"type": "image", "source": {"type": "file"}}), "messages[0].content[0].source"),
        (content({"type": "search_result"}), "messages[0].content[0].type"),
        (content(use()), "messages[0].content[0].type"),
        (content(result(), role="assistant"), "messages[0].content[0].type"),
        (content(use(input="x"), role="assistant"), "messages[0].content[0].input"),
        (content(use(""), role="assistant"), "messages[0].content[0].id"),
        (content(use(), role="assistant"), "messages"),
        (content(result()), "messages[0]"),
        (content(result(content=[{"type": "image"}])), "messages[0].content[0].content[0]"),
        (body(tools=[{"type": "bash_20250124", "name": "bash"}]), "tools[0].type"),
        (body(tools=["x"]), "tools[0].type"),
        (body(tools=[{"name": "f"}]), "tools[0].input_schema"),
        (body(tools=[{"input_schema": {}}]), "tools[0].name"),
        (body(tools=[{"name": "f", "input_schema": {}}], tool_choice={"type": "tool"}),
         "tool_choice.type"),
        (body(output_config={"format": {"type": "text"}}), "output_config.format"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(wrong: Any, param: str) -> None:
    with pytest.raises(RequestFieldError) as raised:
        requests.chat_request(wrong)
    assert raised.value.param == param
