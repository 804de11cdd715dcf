"""Answers of the messages API, whole and streamed, become those of the chat wire."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.providers.anthropic_answers import MessageStream, completion, usage

USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4,
         "output_tokens": 5}  # fmt: skip


def answer(content: Any, reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    return {"id": "msg_1", "model": "c", "content": content, "stop_reason": reason,
            "usage": USAGE, **more}  # fmt: skip


def use(input_: Any, number: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"id{number}", "name": f"f{number}", "input": input_}


@pytest.mark.parametrize(
    "damaged",
    [
        None, [], "x", {}, {"content": None}, answer("x"), answer({}), answer([], None),
        answer([], ""), answer([], ["end_turn"]), answer(["x"]), answer([None]), answer([["text"]]),
        answer([{"type": "text"}]), answer([{"type": "text", "text": None}]),
        answer([{"type": "text", "text": 5}]), answer([{"type": "tool_use", "id": "1"}]),
        answer([{"type": "thinking", "thinking": 5}]), answer([], usage="x"), answer([], usage=[1]),
        answer([], usage={"input_tokens": "3"}),
    ],
)  # fmt: skip
def test_what_is_no_answer(damaged: Any) -> None:
    with pytest.raises(ValueError, match=r"^(it has no|a part of it cannot be read)"):
        completion(damaged)


def test_arguments_that_are_nested_too_deeply_are_no_answer() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="cannot be read"):
        completion(answer([use(deep)]))


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"),
     ("model_context_window_exceeded", "length"), ("tool_use", "tool_calls"),
     ("refusal", "content_filter"), ("pause_turn", "stop"), ("something_new", "stop")],
)  # fmt: skip
def test_reasons(reason: str, expected: str) -> None:
    assert completion(answer([], reason))["choices"][0]["finish_reason"] == expected


def test_a_whole_answer() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"},
        {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "b"},
        use({"x": "é"}), {"type": "new kind"}, use({}, 1),
    ]  # fmt: skip
    found = check_completion(completion(answer(content, "tool_use")), "m")
    message = found["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("ab", "hm")
    calls = [(call["id"], json.loads(call["function"]["arguments"]))
             for call in message["tool_calls"]]  # fmt: skip
    assert calls == [("id0", {"x": "é"}), ("id1", {})]
    assert found["usage"] == {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
                              "prompt_tokens_details": {"cached_tokens": 4}}  # fmt: skip
    assert completion(answer([]))["choices"][0]["message"]["content"] is None


def test_usage_without_counts() -> None:
    assert usage({})["total_tokens"] == 0
    assert usage({"input_tokens": None, "output_tokens": 3})["total_tokens"] == 3


BLOCKS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(max_size=6)),
        st.tuples(st.just("thinking"), st.text(max_size=6)),
        st.tuples(
            st.just("tool_use"),
            st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
        ),
    ),
    max_size=6,
)


def events_of(blocks: Sequence[tuple[str, Any]], cut: int) -> list[dict[str, Any]]:
    """Send blocks as the messages API does."""
    begun = {"id": "msg_1", "model": "c", "usage": {**USAGE, "output_tokens": 1}}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, (kind, said) in enumerate(blocks):
        if kind == "tool_use":
            start: dict[str, Any] = use({}, index)
            text = json.dumps(said) if said else ""
            # An empty fragment comes first.
            cuts = ["", *(text[i : i + cut] for i in range(0, len(text), cut))]
            parts = [{"type": "input_json_delta", "partial_json": part} for part in cuts]
        else:
            start, field = {"type": kind, kind: ""}, kind
            parts = [{"type": f"{kind}_delta", field: said[i : i + cut]}
                     for i in range(0, len(said), cut)]  # fmt: skip
        found.append({"type": "content_block_start", "index": index, "content_block": start})
        found += [{"type": "content_block_delta", "index": index, "delta": part} for part in parts]
        found.append({"type": "content_block_stop", "index": index})
    done = {"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5, "input_tokens": None}}  # fmt: skip
    return [*found, done, {"type": "message_stop"}]


@given(BLOCKS, st.integers(1, 4))
def test_a_stream_says_what_the_whole_answer_says(blocks: list[tuple[str, Any]], cut: int) -> None:
    check, told = StreamCheck("m", 1), MessageStream()
    chunks = [
        check.check_chunk(each)
        for event in events_of(blocks, cut)
        for each in told.chunks_of_event(event)
    ]
    check.end()
    assert told.is_over
    content = [
        use(said, index) if kind == "tool_use" else {"type": kind, kind: said}
        for index, (kind, said) in enumerate(blocks)
    ]
    whole = completion(answer(content, "tool_use"))
    message = whole["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    for name in ("content", "reasoning_content"):
        assert "".join(each.get(name) or "" for each in deltas) == (message.get(name) or "")
    calls: dict[int, list[str]] = {}
    for call in (call for each in deltas for call in each.get("tool_calls", ())):
        known = calls.setdefault(call["index"], ["", "", ""])
        known[0] += call.get("id", "")
        known[1] += call["function"].get("name", "")
        known[2] += call["function"].get("arguments", "")
    assert [(a, b, json.loads(c)) for _, (a, b, c) in sorted(calls.items())] == [
        (each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in message.get("tool_calls", ())
    ]
    assert chunks[-1]["usage"] == whole["usage"]
    assert {chunk["id"] for chunk in chunks} == {"msg_1"}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"}, {"type": "message_start", "message": []},
        {"type": "content_block_start", "index": 0}, {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 7,
         "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_start", "index": [], "content_block": use({})},
        {"type": "message_delta"}, {"type": "message_delta", "delta": {}, "usage": "x"},
        {"type": "content_block_stop"},
    ],
)  # fmt: skip
def test_a_damaged_event_raises_what_its_reader_catches(event: Any) -> None:
    told = MessageStream()
    with pytest.raises((KeyError, TypeError, AttributeError)):
        list(told.chunks_of_event(event))


def test_an_unknown_event_says_nothing() -> None:
    told = MessageStream()
    for event in ({"type": "ping"}, {"type": ["x"]}, {}, {"type": "content_block_delta", "index": 0,
                  "delta": {"type": "signature_delta", "signature": "x"}}):  # fmt: skip
        assert list(told.chunks_of_event(event)) == []
    assert not told.is_over
