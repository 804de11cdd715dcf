"""A chat request that cannot work is refused before a provider is asked, by its field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.checking import (
    MOST_MESSAGES,
    RequestFieldError,
    check_messages,
    check_request,
)

USER = {"role": "user", "content": "hi"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Any = {"role": "tool", "tool_call_id": "1", "content": "x"}


def refused(body: Any) -> tuple[str, str]:
    with pytest.raises(RequestFieldError) as caught:
        check_request(body)
    return caught.value.param, caught.value.message


@pytest.mark.parametrize("body", [None, [], "x", 5, True])
def test_a_body_that_is_no_object(body: Any) -> None:
    assert refused(body) == ("", "the request body must be a JSON object")


@pytest.mark.parametrize("model", [None, "", 5, ["m"], {}])
def test_a_request_names_its_model(model: Any) -> None:
    assert refused({"model": model, "messages": [USER]})[0] == "model"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("stream", "true", "must be true or false"), ("stream", 1, "must be true or false"),
        ("n", True, "must be a whole number"), ("n", 0, "from 1 to 128"), ("n", 129, "from 1"),
        ("n", 1.5, "must be a whole number"), ("seed", "1", "must be a whole number"),
        ("temperature", "hot", "from 0 to 2"), ("temperature", True, "from 0 to 2"),
        ("temperature", 2.01, "from 0 to 2"), ("temperature", float("nan"), "from 0 to 2"),
        ("top_p", -0.1, "from 0 to 1"), ("presence_penalty", -3, "from -2 to 2"),
        ("max_tokens", 0, "from 1 to 1000000000"), ("max_tokens", 10**10, "from 1"),
        ("max_completion_tokens", "9", "must be a whole number"),
        ("top_logprobs", 21, "from 0 to 20"), ("tools", {}, "must be a list"),
        ("response_format", "json", "must be an object"), ("logit_bias", [], "must be an object"),
        ("metadata", "x", "must be an object"), ("user", 7, "must be a text"),
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_type_or_range(name: str, value: Any, told: str) -> None:
    param, message = refused({"model": "m", "messages": [USER], name: value})
    assert param == name
    assert message.startswith(f"'{name}' ") and told in message


def test_null_is_as_good_as_nothing() -> None:
    names = ("stream", "n", "temperature", "tools", "max_tokens", "stream_options")
    body = {"model": "m", "messages": [USER], **dict.fromkeys(names)}
    assert check_request(body) is body


def test_options_that_need_another_one() -> None:
    request = {"model": "m", "messages": [USER]}
    assert refused({**request, "stream_options": {}})[0] == "stream_options"
    assert refused({**request, "stream": False, "stream_options": {}})[0] == "stream_options"
    assert refused({**request, "top_logprobs": 1})[0] == "top_logprobs"
    check_request({**request, "top_logprobs": 1, "logprobs": True})


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ("f", "tools[1]"), ({}, "tools[1]"), ({"type": None}, "tools[1]"),
        ({"type": "function"}, "tools[1].function"),
        ({"type": "function", "function": "f"}, "tools[1].function"),
        ({"type": "function", "function": {"name": 5}}, "tools[1].function"),
        ({"type": "function", "function": {"name": "f", "parameters": []}},
         "tools[1].function.parameters"),
    ],
)  # fmt: skip
def test_a_tool_that_is_none(tool: Any, param: str) -> None:
    assert refused({"model": "m", "messages": [USER], "tools": [{"type": "x"}, tool]})[0] == param


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (None, ""), ([], ""), ("user: hi", ""), ({}, ".role"),
        ({"role": "USER", "content": "x"}, ".role"), ({"role": ["user"], "content": "x"}, ".role"),
        ({"role": "user"}, ".content"), ({"role": "user", "content": 5}, ".content"),
        ({"role": "user", "content": []}, ".content"),
        ({"role": "user", "content": {}}, ".content"),
        ({"role": "assistant"}, ".content"), ({"role": "assistant", "tool_calls": []}, ".content"),
        ({"role": "user", "content": None, "tool_calls": [CALL]}, ".content"),
        ({"role": "user", "content": ["x"]}, ".content[0]"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {}]}, ".content[1]"),
        ({"role": "user", "content": [{"type": "text"}]}, ".content[0].text"),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, ".content[0].text"),
        ({**CALLS, "tool_calls": {"0": CALL}}, ".tool_calls"),
        ({**CALLS, "tool_calls": ["f"]}, ".tool_calls[0].id"),
        ({**CALLS, "tool_calls": [{**CALL, "id": ""}]}, ".tool_calls[0].id"),
        ({**CALLS, "tool_calls": [{**CALL, "id": 5}]}, ".tool_calls[0].id"),
        ({**CALLS, "tool_calls": [CALL, {"id": "2"}]}, ".tool_calls[1].function"),
        ({**CALLS, "tool_calls": [{"id": "2", "function": {"name": "f", "arguments": {}}}]},
         ".tool_calls[0].function"),
        ({"role": "tool", "content": "x"}, ".tool_call_id"),
        ({"role": "tool", "tool_call_id": ["1"], "content": "x"}, ".tool_call_id"),
        (RESULT, ""),
    ],
)  # fmt: skip
def test_a_message_that_is_none(message: Any, param: str) -> None:
    with pytest.raises(RequestFieldError) as caught:
        check_messages([USER, message])
    assert caught.value.param == f"messages[1]{param}"


@pytest.mark.parametrize("messages", [None, [], {}, "hi"])
def test_no_messages(messages: Any) -> None:
    with pytest.raises(RequestFieldError, match="must be a list of at least one message"):
        check_messages(messages)


def test_too_many_messages() -> None:
    check_messages([USER] * MOST_MESSAGES)
    with pytest.raises(RequestFieldError, match="has 501 messages, more than 500"):
        check_messages([USER] * (MOST_MESSAGES + 1))


STEPS = st.lists(
    st.one_of(
        st.just("user"),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True),
        st.sampled_from(["=a", "=b", "=c"]),
    ),
    min_size=1,
    max_size=8,
)


@given(STEPS)
def test_each_call_has_its_result_just_after_it(steps: list[Any]) -> None:
    messages, waiting, is_right = [], set[str](), True
    for step in steps:
        if isinstance(step, str) and step.startswith("="):
            is_right &= step[1:] in waiting
            waiting.discard(step[1:])
            messages.append({**RESULT, "tool_call_id": step[1:]})
            continue
        is_right &= not waiting
        calls = [{**CALL, "id": id_} for id_ in step] if isinstance(step, list) else []
        waiting = {call["id"] for call in calls}
        messages.append({**CALLS, "tool_calls": calls} if calls else USER)
    if is_right and not waiting:
        check_messages(messages)
        return
    with pytest.raises(RequestFieldError):
        check_messages(messages)


def test_missing_results_are_named() -> None:
    calls = {**CALLS, "tool_calls": [CALL, {**CALL, "id": "2"}]}
    with pytest.raises(RequestFieldError, match="missing: 1, 2") as caught:
        check_messages([USER, calls])
    assert caught.value.param == "messages"
    with pytest.raises(RequestFieldError, match="missing: 2") as caught:
        check_messages([USER, calls, RESULT, USER])
    assert caught.value.param == "messages[3]"


def test_a_long_id_is_not_repeated() -> None:
    with pytest.raises(RequestFieldError) as caught:
        check_messages([USER, {**RESULT, "tool_call_id": "i" * 100_000}])
    assert len(caught.value.message) < 400
