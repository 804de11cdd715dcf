"""Rules that adapters with own wire formats share: each mistake of a request names its field."""

import base64
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.providers import anthropic_requests, bedrock_wire, translating

USER = {"role": "user", "content": "hi"}


def refused(request: dict[str, Any]) -> str:
    with pytest.raises(RequestFieldError) as caught:
        translating.refuse_others(request, frozenset({"messages"}), "Acme")
    return caught.value.param


@pytest.mark.parametrize(
    "harmless",
    [
        {"n": 1}, {"n": None}, {"logprobs": False}, {"logit_bias": {}}, {"frequency_penalty": 0.0},
        {"modalities": ["text"]}, {"response_format": {"type": "text"}}, {"verbosity": "medium"},
        {"user": "u", "stream": True, "stream_options": {"include_usage": True}}, {"store": False},
        {"unknown": None}, {"metadata": {}}, {"service_tier": "auto"},
    ],
)  # fmt: skip
def test_what_asks_for_nothing_is_left_out(harmless: dict[str, Any]) -> None:
    translating.refuse_others({"messages": [], **harmless}, frozenset({"messages"}), "Acme")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2), ("logprobs", True), ("logit_bias", {"5": 1}), ("presence_penalty", -1),
        ("modalities", ["audio"]), ("modalities", "text"), ("store", True), ("unknown", 0),
        ("response_format", {"type": "json_object"}), ("response_format", {}),
        ("response_format", "text"), ("response_format", ["text"]), ("verbosity", "high"),
        ("audio", {}), ("functions", []),
    ],
)  # fmt: skip
def test_what_is_not_translated_is_refused_by_its_name(name: str, value: Any) -> None:
    assert refused({name: value}) == name


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "json_object"}, {"type": "json_schema"}, {"type": ["text"]}, {"type": None}, {},
        {"type": "json_schema", "json_schema": {"name": "x"}},
        {"type": "json_schema", "json_schema": "x"},
        {"type": "json_schema", "json_schema": {"schema": [1]}},
    ],
)  # fmt: skip
def test_a_format_without_a_schema_is_refused(wanted: Any) -> None:
    if not wanted:
        assert translating.json_schema_of({"response_format": wanted}, "Acme") is None
        return
    with pytest.raises(RequestFieldError, match="must be a 'json_schema' with a 'schema'"):
        translating.json_schema_of({"response_format": wanted}, "Acme")


@pytest.mark.parametrize(
    ("stop", "expected"),
    [(None, []), ("", []), ("a", ["a"]), (["a", "b"], ["a", "b"]), ([], [])],
)
def test_stop_sequences(stop: Any, expected: list[str]) -> None:
    assert translating.stops({"stop": stop}) == expected


@pytest.mark.parametrize("stop", [5, {"a": 1}, ["a", 5], [None], True])
def test_what_is_no_stop_sequence_is_refused(stop: Any) -> None:
    with pytest.raises(RequestFieldError, match="'stop' must be a text or a list of texts"):
        translating.stops({"stop": stop})


@given(st.binary(max_size=64))
def test_a_file_in_a_url_is_read_back(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    found = translating.data_url("x", f"data:image/svg+xml;base64,{text}")
    assert found is not None
    assert (found.media_type, found.content) == ("image/svg+xml", content)


@pytest.mark.parametrize("address", ["http://x/y.png", "https://x/y.png"])
def test_an_address_is_no_file(address: str) -> None:
    assert translating.data_url("x", address) is None


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (None, "must be a URL"), (5, "must be a URL"), ({}, "must be a URL"),
        ("file:///etc/passwd", "must be an address"), ("", "must be an address"),
        ("data:image/png,abc", "must be an address"), ("ftp://x", "must be an address"),
        ("data:image/png;base64,a", "no valid base64"), ("data:a/b;base64,é", "no valid base64"),
        ("data:a/b;base64,AA==AA==", "no valid base64"), ("data:a/b;base64,A A=", "valid base64"),
        (" https://x", "must be an address"),
    ],
)  # fmt: skip
def test_another_url_is_refused(url: Any, told: str) -> None:
    with pytest.raises(RequestFieldError, match=told):
        translating.data_url("messages[0].content[0].image_url.url", url)


def test_a_text_of_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]
    assert translating.text_of("at", parts) == "a\nb"
    assert translating.text_of("at", "c") == "c"
    assert translating.text_of("at", None) == ""
    with pytest.raises(RequestFieldError, match=r"at\.content\[1\]"):
        translating.text_of("at", [*parts[:1], {"type": "image_url", "image_url": {"url": "x"}}])


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments},
            **more}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", {}), (" \n", {}), ("{}", {}), ('{"a": [1, null]}', {"a": [1, None]})],
)
def test_arguments_are_an_object(text: str, expected: dict[str, Any]) -> None:
    assert translating.arguments_of("at", call(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[1]", "null", "5", '"x"', "{", '{"a": }', "[" * 100_000, '{"a": NaN}', '{"a": 1e999}',
        '{"a": "\\ud800"}', "{'a': 1}",
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_sent_on_are_refused(text: str) -> None:
    with pytest.raises(RequestFieldError, match=r"'at\.function\.arguments' must be a JSON object"):
        translating.arguments_of("at", call(text))


def test_a_call_of_another_kind_is_refused() -> None:
    custom = {"id": "1", "type": "custom", "custom": {"name": "f", "input": "x"}}
    with pytest.raises(RequestFieldError, match=r"'at\.type' must be 'function'"):
        translating.arguments_of("at", custom)


@pytest.mark.parametrize("calls", [5, "f", [None], [{"id": "1"}], [call("{}")]])
@pytest.mark.parametrize("translated", [bedrock_wire.translated, anthropic_requests.translated])
def test_calls_of_a_user_mean_nothing(translated: Any, calls: Any) -> None:
    """Only those of the model are checked."""
    [turn] = translated({"messages": [{**USER, "tool_calls": calls}]}, "m")["messages"]
    assert [each["text"] for each in turn["content"]] == ["hi"]


def test_a_tool_of_another_kind_is_refused() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {}}]
    with pytest.raises(RequestFieldError, match=r"'tools\[1\]\.type' must be 'function'"):
        translating.functions_of({"tools": tools}, "Acme")


ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])


@given(st.lists(st.tuples(ROLES, st.integers(0, 2)), max_size=12))
def test_the_user_and_the_model_take_turns(said: list[tuple[str, int]]) -> None:
    messages = [
        {"role": role, "content": f"{number}", "blocks": count}
        for number, (role, count) in enumerate(said)
    ]

    def blocks(at: str, role: str, message: dict[str, Any]) -> list[dict[str, Any]]:
        assert at == f"messages[{message['content']}]" and role == message["role"]
        return [{"of": message["content"]}] * int(message["blocks"])

    found = translating.turns(messages, blocks)
    roles = [each["role"] for each in found]
    assert all(a != b for a, b in itertools.pairwise(roles))
    assert all(each["content"] for each in found)
    # Every block is there once, in order, in a turn of its speaker.
    told = [
        ("assistant" if role == "assistant" else "user", {"of": f"{number}"})
        for number, (role, count) in enumerate(said)
        for _ in range(count)
        if role not in ("system", "developer")
    ]
    assert [(each["role"], block) for each in found for block in each["content"]] == told
    texts = [f"{n}" for n, (role, _) in enumerate(said) if role in ("system", "developer")]
    assert translating.instructions(messages) == texts


def test_a_role_out_of_use_is_refused() -> None:
    with pytest.raises(RequestFieldError, match=r"'messages\[1\]\.role' must not be 'function'"):
        translating.turns([USER, {"role": "function", "content": "x"}], lambda *_: [])


def test_the_length_of_an_answer() -> None:
    assert translating.most_tokens({}, 7) == 7
    assert translating.most_tokens({"max_tokens": 5}, 7) == 5
    assert translating.most_tokens({"max_tokens": 5, "max_completion_tokens": 6}, 7) == 6
