"""The state of a loop: its next request, its end, and its cost."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tool_loop.rounds import ResponseRounds, ToolRounds
from caraway_ai.tools.protocol import ToolDefinition
from caraway_core.errors import ModelError, ModelInputError

USER = {"role": "user", "content": "x"}
DEFINITIONS = [ToolDefinition(name, f"d {name}", {"type": "object"}) for name in ("a", "b")]
THEIRS = {"type": "function", "function": {"name": "b"}}


def rounds(most: int = 3, **request: Any) -> ToolRounds:
    return ToolRounds({"messages": [USER], **request}, DEFINITIONS, most)


def names(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def calls(count: int, text: str = "{}") -> Sequence[ToolCall]:
    return [ToolCall(f"id{n}", "a", text) for n in range(count)]


def test_a_tool_of_the_caller_hides_one_of_the_runtime() -> None:
    state = rounds(tools=[THEIRS])
    assert set(state.own) == {"a"}
    assert names(state.next_request()) == ["b", "a"]


def test_without_tools_a_request_is_sent_as_it_is() -> None:
    state = rounds(tool_choice="none", temperature=0)
    assert not state.own
    assert state.next_request() == {"messages": [USER], "tool_choice": "none", "temperature": 0}


@pytest.mark.parametrize(
    ("choice", "after"),
    [
        ("required", "auto"),
        ({"type": "function", "function": {"name": "a"}}, "auto"),
        ("auto", "auto"),
        (None, None),
    ],
)
def test_a_call_is_forced_once(choice: Any, after: Any) -> None:
    state = rounds(tool_choice=choice) if choice else rounds()
    assert state.next_request().get("tool_choice") == choice
    state.take_result(state.take_calls(None, calls(1))[0], "r")
    assert state.next_request().get("tool_choice") == after


def test_the_last_round_allows_no_calls_and_then_it_ends() -> None:
    state = rounds(most=2, tool_choice="required")
    for _ in range(2):
        state.check_end()
        state.take_calls("", calls(1))
    assert state.next_request()["tool_choice"] == "none"
    with pytest.raises(ModelError, match=r"called tools 2 times in a row.*tool_recursion_limit"):
        state.check_end()


def test_calls_and_results_follow_each_other() -> None:
    state = rounds()
    kept = state.take_calls("hm", [*calls(1), ToolCall("id1", "b", "not JSON")])
    for call in kept:
        state.take_result(call, f"r {call.id}")
    messages = state.next_request()["messages"]
    assert messages[0] == USER and messages[1]["content"] == "hm"
    parts = messages[1]["tool_calls"]
    assert [part["id"] for part in parts] == ["id0", "id1"]
    # Providers that parse them refuse the conversation otherwise.
    assert [part["function"]["arguments"] for part in parts] == ["{}", "{}"]
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "id0", "content": "r id0"},
        {"role": "tool", "tool_call_id": "id1", "content": "r id1"},
    ]
    assert state.request["messages"] == [USER]


def test_no_more_calls_are_run_than_have_room() -> None:
    state = rounds()
    kept = state.take_calls(None, calls(100))
    assert len(kept) == 32
    assert len(state.added[0]["tool_calls"]) == 32


def test_a_call_is_not_repeated_without_end() -> None:
    state = rounds(most=100)
    call = calls(1)[0]
    told = [state.refusal(call) for _ in range(2)]
    assert told == [None, None] and not state.is_last
    assert "was made before with the same arguments" in str(state.refusal(call))
    assert not state.is_last
    state.refusal(ToolCall("other id", "a", " {} \n"))
    assert state.is_last
    assert state.refusal(ToolCall("x", "a", '{"a": 1}')) is None


def test_several_choices_are_refused_where_there_are_tools() -> None:
    with pytest.raises(ModelInputError, match="'n' must be 1"):
        rounds(n=2)
    rounds(n=1)
    rounds(n=2, tool_choice="none")


USAGE = st.recursive(
    st.integers(0, 50),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("pqr"), st.integers(0, 50)), max_size=4))
def test_usage_is_the_sum_of_all_answers(told: list[dict[str, int]]) -> None:
    state = rounds()
    for each in told:
        state.take_usage({**each, "details": {"cached": each.get("p", 0), "tier": "x"}})
    for name in "pqr":
        wanted = [each[name] for each in told if name in each]
        assert state.usage.get(name) == (sum(wanted) if wanted else None)
    if told:
        assert state.usage["details"] == {"cached": sum(e.get("p", 0) for e in told), "tier": "x"}


@given(st.lists(st.dictionaries(st.sampled_from("ab"), USAGE | st.none() | st.text()), max_size=3))
def test_any_usage_can_be_added(told: list[dict[str, Any]]) -> None:
    state = rounds()
    each: Any
    for each in [*told, None, 5, "x", []]:
        state.take_usage(each)
    assert set(state.usage) == {name for each in told for name in each}


def item(name: str, id_: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": "{}", **more}


def response_rounds(**request: Any) -> ResponseRounds:
    return ResponseRounds({"input": "hi", **request}, DEFINITIONS, 3)


def test_a_conversation_of_items() -> None:
    state = response_rounds(tools=[{"type": "function", "name": "b"}, {"type": "web_search"}])
    assert set(state.own) == {"a"}
    thought, theirs = {"type": "reasoning", "id": "r"}, item("b", "2")
    output = [thought, item("a", "1"), theirs, item("a", "3", arguments=None)]
    found = state.calls_of(output)
    assert found == [ToolCall("1", "a", "{}"), ToolCall("3", "a", "")]
    state.take_output(output, found)
    state.take_result(found[0], "r")
    asked = state.next_request()
    # A call that was not run has no result, and providers refuse it.
    assert asked["input"] == [
        {"type": "message", "role": "user", "content": "hi"}, thought, output[1], output[3],
        {"type": "function_call_output", "call_id": "1", "output": "r"},
    ]  # fmt: skip
    tool = {"type": "function", "name": "a", "description": "d a", "strict": False,
            "parameters": {"type": "object"}}  # fmt: skip
    assert asked["tools"] == [*state.request["tools"], tool]


def test_items_are_own_by_type_and_name() -> None:
    state = response_rounds(tools=[{"type": "function", "name": "c"}])
    assert state.is_own(item("a", "1"))
    # No tool has this name: the loop takes the call, and answers with an error.
    assert state.is_own(item("nowhere", "1"))
    for other in (item("c", "1"), {**item("a", "1"), "type": "custom_tool_call"}, {},
                  {"type": "function_call"}, {**item("a", "1"), "name": ["a"]}):  # fmt: skip
        assert not state.is_own(other)
    assert len(state.calls_of([item("a", str(n)) for n in range(100)])) == 32
