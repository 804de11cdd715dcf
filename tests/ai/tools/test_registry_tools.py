"""The two tools that a model gets in place of many."""

import asyncio
import json
from typing import Any

import pytest

from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tool_loop.rounds import ToolRounds
from caraway_ai.tool_loop.running import LoopSettings, LoopTools
from caraway_ai.tools import toolbox as toolboxes
from caraway_ai.tools.arguments import ToolArgumentsError
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import Arguments, ToolCaller, ToolDefinition
from caraway_ai.tools.registry_tools import ToolInvocation, ToolSearchTool
from caraway_ai.tools.selecting import ToolSelection
from caraway_ai.tools.toolbox import Toolbox, ToolUse
from caraway_core.errors import DeadlineError, NotFoundError, QueryError, ToolError
from tests.kit.tools import FakeTool, FixedTools, echoing, returning

CALLER = ToolCaller(trace_id="t", span_id="s")


def selected(*tools: FakeTool, **limits: Any) -> ToolSelection:
    box = Toolbox(ToolLimits(**limits))
    box.sources = [FixedTools("own", tools)]
    definitions = [ToolDefinition.from_tool(tool) for tool in tools]
    pair = ToolSearchTool(definitions), ToolInvocation(box, toolboxes.named(tools))
    return ToolSelection(box, toolboxes.named(pair))


async def invoked(of: ToolSelection, tool: object, arguments: object = None) -> Any:
    return await of.call("tool_invoke", {"tool_id": tool, "arguments": arguments}, CALLER)


async def test_a_result_comes_with_the_tool_that_made_it() -> None:
    tools = selected(echoing("a", n={"type": "integer"}))
    assert await invoked(tools, "a", {"n": 1}) == {"tool_id": "a", "result": {"n": 1}}
    assert await invoked(tools, "a", None) == {"tool_id": "a", "result": {}}
    assert await tools.call("tool_invoke", {"tool_id": "a"}, CALLER) == {
        "tool_id": "a",
        "result": {},
    }


async def test_arguments_are_checked_by_the_tool_that_is_called() -> None:
    tools = selected(echoing("a", n={"type": "integer"}))
    with pytest.raises(ToolArgumentsError, match="tool 'a': argument 'n' must be of type integer"):
        await invoked(tools, "a", {"n": "x"})
    with pytest.raises(ToolArgumentsError, match=r"tool 'tool_invoke': .*'arguments' must be of"):
        await invoked(tools, "a", [1])
    with pytest.raises(ToolArgumentsError, match="'tool_id' is missing"):
        await tools.call("tool_invoke", {}, CALLER)
    with pytest.raises(ToolArgumentsError, match="tool_id"):
        await invoked(tools, 7)


@pytest.mark.parametrize("name", ["tool_invoke", "tool_search", "", "A", "a ", "a\n"])
async def test_nothing_but_the_tools_of_the_model_can_be_invoked(name: str) -> None:
    with pytest.raises(NotFoundError, match="no tool"):
        await invoked(selected(echoing("a")), name)


async def test_an_unknown_tool_of_many_is_to_be_searched_for() -> None:
    few = selected(*(echoing(f"tool{number}") for number in range(20)))
    many = selected(*(echoing(f"tool{number}") for number in range(21)))
    with pytest.raises(NotFoundError, match=r"no tool 'tool99'; .*tool9"):
        await invoked(few, "tool99")
    with pytest.raises(NotFoundError, match="call tool_search to find one") as caught:
        await invoked(many, "y" * 5000)
    assert len(caught.value.message) < 200


async def test_rows_of_a_found_tool_are_cut_as_those_of_a_called_one() -> None:
    rows = [{"n": "x" * 90, "at": number} for number in range(100)]
    tools = selected(returning("a", rows), rows=50, bytes=4000)
    direct = await tools.toolbox.call("a", {}, CALLER)
    assert 0 < len(direct["rows"]) < 50
    assert await invoked(tools, "a") == {"tool_id": "a", "result": direct}


async def test_a_model_reads_the_first_rows_of_a_found_tool() -> None:
    rows = [{"n": "x" * 90, "at": number} for number in range(100)]
    tools = selected(returning("a", rows))
    loop = LoopTools(tools, lambda: CALLER, LoopSettings(rows=7, bytes=2000))
    rounds = ToolRounds({"messages": []}, loop.definitions, 3)
    call = ToolCall("c1", "tool_invoke", json.dumps({"tool_id": "a"}))
    rounds.take_calls(None, [call])
    await loop.run_calls(rounds, [call])
    message = rounds.next_request()["messages"][-1]
    read = json.loads(message["content"])
    assert read["tool_id"] == "a"
    assert read["result"]["rows"] == rows[:7]


async def test_what_cannot_be_cut_is_refused_by_the_name_of_the_found_tool() -> None:
    tools = selected(returning("a", "x" * 500), bytes=100)
    with pytest.raises(ToolError, match="tool 'a' has 502 bytes"):
        await invoked(tools, "a")


async def test_a_failure_is_that_of_the_found_tool() -> None:
    async def answer(arguments: Arguments) -> Any:
        raise QueryError("no such column")

    with pytest.raises(QueryError, match="no such column"):
        await invoked(selected(FakeTool("a", answer)), "a")


async def test_a_found_tool_that_never_ends_is_stopped_once() -> None:
    ended = list[str]()

    async def answer(arguments: Arguments) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")

    tools = selected(FakeTool("slow", answer), timeout_s=0.02)
    with pytest.raises(DeadlineError, match=r"was stopped after 0\.02 s"):
        await invoked(tools, "slow")
    assert ended == ["stopped"]


async def test_both_calls_are_recorded_one_inside_the_other() -> None:
    tools, seen = selected(returning("a", 7)), list[ToolUse]()
    box = Toolbox(record=seen.append)
    pair = ToolInvocation(box, {"a": returning("a", 7)})
    assert await box.use(pair, {"tool_id": "a"}, CALLER) == {"tool_id": "a", "result": 7}
    inner, outer = seen
    assert (inner.tool_name, outer.tool_name) == ("a", "tool_invoke")
    assert inner.caller.parent_span_id == outer.caller.span_id
    assert outer.caller.parent_span_id == CALLER.span_id
    assert outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns
    assert len(tools.definitions) == 2


async def test_a_search_tells_all_that_a_call_needs() -> None:
    schema = {"n": {"type": "integer", "description": "The order."}}
    tools = selected(echoing("refund", "Pays an order back", **schema), echoing("weather", "Rain"))
    found = await tools.call("tool_search", {"query": "pay an order back"}, CALLER)
    assert (found["query"], found["keywords"]) == ("pay an order back", [])
    assert [each["tool_id"] for each in found["tools"]] == ["refund"]
    (told,) = found["tools"]
    assert told["description"] == "Pays an order back"
    assert told["parameters"]["properties"] == schema
    assert told["matched_terms"] == ["back", "order", "pay"]
    assert {each["source"] for each in told["match_sources"]} == {
        "full_text", "keyword", "schema",
    }  # fmt: skip
    assert 0 < told["score"] <= 1


@pytest.mark.parametrize(
    ("more", "count"),
    [({}, 5), ({"limit": 1}, 1), ({"limit": 20}, 8), ({"min_score": 1}, 1), ({"min_score": 0}, 5)],
)
async def test_a_search_returns_no_more_than_is_asked_for(more: Any, count: int) -> None:
    tools = selected(*(echoing(f"orders{number}", "orders") for number in range(8)))
    found = await tools.call("tool_search", {"query": "orders", **more}, CALLER)
    assert len(found["tools"]) <= count
    if "min_score" not in more:
        assert len(found["tools"]) == count


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 21},
        {"query": "x", "min_score": 1.1},
        {"query": "x", "keywords": "y"},
        {"query": "x", "other": 1},
    ],
)
async def test_a_search_that_is_not_one_is_refused(arguments: Any) -> None:
    with pytest.raises(ToolArgumentsError, match="tool 'tool_search'"):
        await selected(echoing("a")).call("tool_search", arguments, CALLER)


@pytest.mark.parametrize("query", ["?!", "the of and", "\x00", "🦆", "x" * 100_000])
async def test_a_search_for_nothing_finds_nothing(query: str) -> None:
    found = await selected(echoing("a", "b c")).call("tool_search", {"query": query}, CALLER)
    assert found["tools"] == []
