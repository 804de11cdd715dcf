"""Tools are found, limited and recorded in one place."""

import asyncio
from typing import Any

import pytest

from caraway_ai.tools.arguments import ToolArgumentsError
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import Arguments, ToolCaller
from caraway_ai.tools.toolbox import Toolbox, ToolUse
from caraway_core.errors import DeadlineError, NotFoundError, QueryError, ToolError
from tests.kit.tools import FakeTool, FixedTools, echoing, returning

CALLER = ToolCaller(trace_id="t", span_id="s")


def box(*tools: FakeTool, **limits: Any) -> Toolbox:
    made = Toolbox(ToolLimits(**limits))
    made.sources = [FixedTools("own", tools)]
    return made


async def test_an_unknown_tool_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(NotFoundError, match="no tool 'sqll'; did you mean 'sql'"):
        await box(echoing("sql")).call("sqll", {}, CALLER)


async def test_the_first_source_wins_a_name() -> None:
    made = Toolbox()
    made.sources = [
        FixedTools("own", (returning("a", 1),)),
        FixedTools("other", (returning("a", 2), returning("b", 3))),
    ]
    assert await made.call("a", {}, CALLER) == 1
    assert [tool.name for tool in made.chosen("other")] == ["b"]


async def test_a_tool_that_never_ends_is_stopped() -> None:
    stopped = asyncio.Event()

    async def answer(arguments: Arguments) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(DeadlineError, match="tool 'slow' was stopped after"):
        await box(FakeTool("slow", answer), timeout_s=0.01).call("slow", {}, CALLER)
    assert stopped.is_set()


async def test_a_time_limit_inside_a_tool_is_a_failure() -> None:
    async def answer(arguments: Arguments) -> Any:
        raise TimeoutError

    with pytest.raises(ToolError, match="tool 'odd' failed"):
        await box(FakeTool("odd", answer)).call("odd", {}, CALLER)


async def test_rows_above_the_limit_are_cut_and_it_is_said() -> None:
    rows = [{"n": number} for number in range(10)]
    cut = await box(returning("rows", rows), rows=3).call("rows", {}, CALLER)
    assert cut["rows"] == rows[:3]
    assert cut["is_truncated"] is True
    assert "the first 3 rows" in cut["note"]


async def test_bytes_above_the_limit_are_cut() -> None:
    rows = [{"n": "x" * 100} for _ in range(10)]
    cut = await box(returning("rows", rows), bytes=350).call("rows", {}, CALLER)
    assert cut["rows"] == rows[:3]


@pytest.mark.parametrize("result", ["x" * 200, {"a": "x" * 200}, [{"a": "x" * 200}]])
async def test_what_cannot_be_cut_is_refused(result: Any) -> None:
    with pytest.raises(ToolError, match="bytes"):
        await box(returning("big", result), bytes=100).call("big", {}, CALLER)


async def test_every_call_is_recorded_with_its_end() -> None:
    async def answer(arguments: Arguments) -> Any:
        if arguments.get("fails"):
            raise QueryError("no such column")
        if arguments.get("breaks"):
            raise ZeroDivisionError
        return 7

    seen: list[ToolUse] = []
    made = Toolbox(record=seen.append)
    made.sources = [FixedTools("own", (FakeTool("t", answer),))]
    await made.call("t", {}, CALLER)
    for arguments, kind in (
        ({"fails": True}, QueryError),
        ({"breaks": True}, ZeroDivisionError),
        ("text", ToolArgumentsError),
    ):
        with pytest.raises(kind):
            await made.call("t", arguments, CALLER)
    told = [(use.tool_name, use.result, use.error) for use in seen]
    assert told[:3] == [
        ("t", 7, None),
        ("t", None, "no such column"),
        ("t", None, "failed; the log has the cause"),
    ]
    assert "must be a JSON object" in str(told[3][2])
    assert {(use.caller.trace_id, use.caller.parent_span_id) for use in seen} == {("t", "s")}


async def test_a_caller_that_goes_away_ends_the_call() -> None:
    begun, seen = asyncio.Event(), list[ToolUse]()

    async def answer(arguments: Arguments) -> Any:
        begun.set()
        await asyncio.Event().wait()

    made = Toolbox(record=seen.append)
    made.sources = [FixedTools("own", (FakeTool("t", answer),))]
    call = asyncio.ensure_future(made.call("t", {}, CALLER))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert [use.error for use in seen] == ["the caller went away"]


def test_names_and_groups_are_chosen_in_order() -> None:
    made = box(echoing("a"), echoing("b"), echoing("c"))
    made.groups = {"pair": ["c", "a", "gone"]}
    assert [tool.name for tool in made.chosen("b, pair")] == ["b", "c", "a"]
    assert [tool.name for tool in made.chosen("own")] == ["a", "b", "c"]
    with pytest.raises(ToolError, match="no tool or group of tools 'd'"):
        made.chosen("a,d")
