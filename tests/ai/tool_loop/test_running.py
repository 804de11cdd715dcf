"""Results and exceptions of tools become texts that every provider accepts."""

import asyncio
import json
from typing import Any, ClassVar

import orjson
import pytest

from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tool_loop.rounds import ToolRounds
from caraway_ai.tool_loop.running import LoopSettings, LoopTools
from caraway_ai.tools import bounding, selecting
from caraway_ai.tools.protocol import Arguments, Tool, ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import ToolError
from tests.kit.tools import FixedTools, returning


def tools(*given: Tool, **settings: Any) -> LoopTools:
    box = Toolbox()
    box.sources = [FixedTools("own", given)]
    return LoopTools(selecting.select(box, "all"), ToolCaller, LoopSettings(**settings))


async def told(loop: LoopTools, *wanted: ToolCall) -> list[str]:
    """Run calls; return the texts that the model reads, in the order of the calls."""
    rounds = ToolRounds({"messages": []}, loop.definitions, 5)
    await loop.run_calls(rounds, wanted)
    assert [each["tool_call_id"] for each in rounds.added] == [call.id for call in wanted]
    orjson.dumps(rounds.added)
    return [each["content"] for each in rounds.added]


async def one(loop: LoopTools, arguments: str = "{}") -> Any:
    return json.loads((await told(loop, ToolCall("1", "t", arguments)))[0])


@pytest.mark.parametrize("value", [None, 5, "é", [], {"a": [1, {"b": None}]}, [[]], True])
async def test_a_value_is_told_as_it_is(value: Any) -> None:
    assert await one(tools(returning("t", value))) == value


async def test_text_is_not_escaped() -> None:
    texts = await told(tools(returning("t", "Größe \U0001f600")), ToolCall("1", "t", "{}"))
    assert texts == ['"Größe \U0001f600"']


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{", "not JSON"), ('{"a": NaN}', "not JSON"), ('{"a": "\\ud800"}', "not JSON"),
        ('{"a": 1, "a": 2}', "not JSON"), ("[1]", "must be a JSON object"),
        ("5", "must be a JSON object"), ("[" * 50_000, "nested too deeply"),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_told_to_the_model(arguments: str, expected: str) -> None:
    answer = await one(tools(returning("t", 1)), arguments)
    assert expected in answer["error"]


class Failing:
    """Raises the error of the test."""

    name = "t"
    description = "fails"
    parameters: ClassVar[Any] = {"type": "object"}

    def __init__(self, exc: Exception) -> None:
        self._exc = exc

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        raise self._exc


async def test_an_error_is_told_and_a_defect_is_not() -> None:
    assert await one(tools(Failing(ToolError("no such city")))) == {"error": "no such city"}
    answer = await one(tools(Failing(RuntimeError("password=hunter2"))))
    assert answer == {"error": "tool 't' failed; try another way"}


async def test_a_tool_that_is_not_there() -> None:
    [text] = await told(tools(returning("t", 1)), ToolCall("1", "tt" * 1_000, "{}"))
    assert "tool" in json.loads(text)["error"] and len(text) < 500


async def test_rows_are_cut_to_the_limits_of_the_loop() -> None:
    rows = [{"n": n} for n in range(50)]
    answer = await one(tools(returning("t", rows), rows=7))
    assert answer["rows"] == rows[:7] and answer["is_truncated"]
    assert "first 7 rows" in answer["note"]


async def test_rows_that_were_cut_before_are_cut_again() -> None:
    before = bounding.cut([{"n": n, "x": "y" * 50} for n in range(50)])
    answer = await one(tools(returning("t", before), bytes=500))
    assert 0 < len(answer["rows"]) < 10 and answer["rows"] == before["rows"][: len(answer["rows"])]
    assert f"first {len(answer['rows'])} rows" in answer["note"]
    assert await one(tools(returning("t", before))) == before


@pytest.mark.parametrize(
    "value", [{"x": "y" * 1_000}, ["y" * 1_000], "y" * 1_000, {"is_truncated": True, "rows": "x"}]
)
async def test_a_value_that_is_too_large_or_odd_is_a_short_text(value: Any) -> None:
    [text] = await told(tools(returning("t", value), bytes=100), ToolCall("1", "t", "{}"))
    assert len(text) < 400


@pytest.mark.parametrize(
    "value",
    [{"is_truncated": True}, {"is_truncated": 1, "answer": 5}, {"rows": [1], "is_truncated": True}],
)
async def test_a_value_that_only_looks_like_cut_rows_is_told(value: Any) -> None:
    assert await one(tools(returning("t", value))) == value


@pytest.mark.parametrize("value", [10**30, {1: 2}, {"a": "\ud800"}, float("nan"), {"x": {1, 2}}])
async def test_what_is_no_json_ends_no_loop(value: Any) -> None:
    [text] = await told(tools(returning("t", value)), ToolCall("1", "t", "{}"))
    assert text


class Waiting:
    """Counts the calls that run at once; later calls end first."""

    name = "t"
    description = "waits"
    parameters: ClassVar[Any] = {"type": "object"}

    def __init__(self) -> None:
        self.running = self.most = 0
        self.seen: list[int] = []

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        # Later calls end first.
        for _ in range(20 - arguments["n"]):
            await asyncio.sleep(0)
        self.running -= 1
        self.seen.append(arguments["n"])
        return arguments["n"]


async def test_calls_run_at_once_and_results_keep_their_order() -> None:
    tool = Waiting()
    calls = [ToolCall(f"id{n}", "t", json.dumps({"n": n})) for n in range(20)]
    texts = await told(tools(tool), *calls)
    assert [json.loads(text) for text in texts] == list(range(20))
    assert tool.most == 8
    assert tool.seen != sorted(tool.seen)
