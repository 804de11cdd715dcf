"""Calls of tools are read as models write them, whole or in fragments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.tool_loop.calls import StreamedCalls, ToolCall, of_message

NAMES = st.sampled_from(["mine", "also_mine", "theirs"])
CALLS = st.lists(st.tuples(NAMES, st.text(max_size=8)), max_size=4)


def call(name: Any, arguments: Any, id_: Any = "1") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (None, []),
        ([], []),
        ([call("f", "{}")], [ToolCall("1", "f", "{}")]),
        ([call("f", None)], [ToolCall("1", "f", "")]),
        ([call("f", {"a": "é"})], [ToolCall("1", "f", '{"a": "\\u00e9"}')]),
        ([call(None, "{}")], [ToolCall("1", "", "{}")]),
        ([call("f", "{}", None), call("g", "{}", "")],
         [ToolCall("call_0", "f", "{}"), ToolCall("call_1", "g", "{}")]),
        ([{"id": "1", "type": "custom", "custom": {"name": "f"}}, call("g", "", 7)],
         [ToolCall("7", "g", "")]),
        (["f", None, {"function": "f"}], []),
    ],
)  # fmt: skip
def test_calls_of_a_message(calls: Any, expected: list[ToolCall]) -> None:
    assert of_message({"role": "assistant", "tool_calls": calls}) == expected


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("{}", True), ('{"a": 1}', True), (' {"a": [null]}\n', True),
        ("", False), (" ", False), ("[1]", False), ('"x"', False), ("null", False), ("{", False),
        ('{"a": 1', False), ('{"a": NaN}', False), ('{"a": "\\ud800"}', False),
        ("[" * 10_000, False), ("call it with a=1", False),
    ],
)  # fmt: skip
def test_what_goes_back_to_a_provider_is_an_object(text: str, is_kept: bool) -> None:
    told = ToolCall("1", "f", text).readable.message_part
    assert told["id"] == "1" and told["function"]["name"] == "f"
    assert told["function"]["arguments"] == (text if is_kept else "{}")
    assert isinstance(json.loads(told["function"]["arguments"]), dict)


def fragments(calls: list[tuple[str, str]], cut: int) -> list[list[dict[str, Any]]]:
    """Write calls as a stream does; each inner list is one chunk."""
    found = []
    for index, (name, text) in enumerate(calls):
        found.append([{**call(name, "", f"id{index}"), "index": index}])
        for at in range(0, len(text), cut):
            part = {"index": index, "function": {"arguments": text[at : at + cut]}}
            found.append([part])
    return found


@given(CALLS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_fragments_of_own_calls_are_collected_and_others_pass(
    calls: list[tuple[str, str]], cut: int, random: Any
) -> None:
    chunks = fragments(calls, cut)
    # Parallel calls may come interleaved; the fragments of one keep their order.
    queues = [[c for c in chunks if c[0]["index"] == i] for i in range(len(calls))]
    mixed = []
    while any(queues):
        mixed.append(random.choice([queue for queue in queues if queue]).pop(0))
    streamed = StreamedCalls(frozenset({"mine", "also_mine"}).__contains__)
    passed = [each for chunk in mixed for each in streamed.collect_fragments(chunk)]
    own = [(f"id{n}", name, text) for n, (name, text) in enumerate(calls) if name != "theirs"]
    assert [(c.id, c.name, c.arguments) for c in streamed.calls] == own
    others = {f"id{n}": text for n, (name, text) in enumerate(calls) if name == "theirs"}
    assert streamed.has_others == bool(others)
    told: dict[int, list[str]] = {}
    for each in passed:
        known = told.setdefault(each["index"], ["", ""])
        known[0] += each.get("id") or ""
        known[1] += each["function"]["arguments"]
    assert sorted(told) == list(range(len(others)))
    assert dict(told.values()) == others


def test_a_name_and_an_id_may_come_later() -> None:
    streamed = StreamedCalls(("mine",).__contains__)
    for part in (
        {"index": 3, "function": None},
        {"index": 3, "id": "x", "function": {"name": "mine"}},
        {"index": 3, "id": "y", "function": {"name": "other", "arguments": {"a": 1}}},
    ):
        assert streamed.collect_fragments([part]) == []
    assert streamed.calls == [ToolCall("x", "mine", '{"a": 1}')]
    assert not streamed.has_others


def test_a_call_without_an_id_gets_one() -> None:
    streamed = StreamedCalls(("mine",).__contains__)
    streamed.collect_fragments([{"index": n, "function": {"name": "mine"}} for n in (2, 1)])
    assert [each.id for each in streamed.calls] == ["call_1", "call_2"]
