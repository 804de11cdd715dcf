"""A loop over the responses API of a provider: callers see one response, without own calls."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.tool_loop import LoopSettings, LoopTools, ResponsesLoop
from caraway_ai.tools import selecting
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import ModelError
from tests.kit import scripted_responses as scripted
from tests.kit.tools import FixedTools, echoing

ASKED: Any = {"model": "m", "input": "hi"}
APPROVAL = {"id": "a_1", "type": "mcp_approval_request", "name": "x", "arguments": "{}"}
CUSTOM = {"id": "c_1", "type": "custom_tool_call", "call_id": "z", "name": "theirs", "input": ""}
RAN = {"id": "r_1", "type": "shell_call", "call_id": "s", "action": {}}
RAN_OUTPUT = {"id": "r_2", "type": "shell_call_output", "call_id": "s", "output": []}


@dataclass
class Scripted:
    """Answers with lists of items in turn; the last is repeated."""

    answers: list[Sequence[dict[str, Any]]]
    status: str = "completed"
    requests: list[dict[str, Any]] = field(default_factory=list)

    def _next(self, request: dict[str, Any]) -> Sequence[dict[str, Any]]:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        return scripted.response(*self._next(request), status=self.status)

    async def events(self, request: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        for event in scripted.events(*self._next(request), end=self.status):
            assert isinstance(event, dict)
            yield event


def loop(model: Scripted, most_rounds: int = 5) -> ResponsesLoop:
    box = Toolbox()
    box.sources = [FixedTools("own", (echoing("own"), echoing("own2")))]
    tools = LoopTools(selecting.select(box, "all"), ToolCaller, LoopSettings(most_rounds))
    return ResponsesLoop(model, tools)


ITEMS = st.sampled_from(
    [scripted.message("a", "m1"), scripted.message("b", "m2"), scripted.THOUGHT, scripted.SEARCH,
     scripted.call("own", "{}", "c1"), scripted.call("own2", "{}", "c2"), RAN, RAN_OUTPUT]
)  # fmt: skip
ROUNDS = st.lists(st.lists(ITEMS, max_size=4, unique_by=lambda item: item["id"]), max_size=3)


@given(ROUNDS)
def test_streamed_and_whole_responses_agree(answers: list[list[dict[str, Any]]]) -> None:
    # A round without calls is the last one; the loop does not request the rest of a script.
    answers = [*answers, [scripted.message("end", "m9")]]
    whole, streamed = Scripted(list(answers)), Scripted(list(answers))
    first, second = loop(whole), loop(streamed)

    async def run() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return await first.respond(ASKED), [event async for event in second.events(ASKED)]

    told, events = asyncio.run(run())
    last = events[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["output"] == told["output"]
    assert whole.requests == streamed.requests and first.said == second.said
    # Own calls are not shown, and items are numbered as they are in the response.
    done = [e for e in events if e["type"] == "response.output_item.done"]
    assert [e["item"] for e in done] == told["output"]
    assert [e["output_index"] for e in done] == list(range(len(done)))
    assert [e["type"] for e in events].count("response.created") == 1
    assert last["response"]["usage"]["total_tokens"] == 7 * len(whole.requests)
    # The output has each call just once, and its result.
    ids = [item["call_id"] for item in first.said if item.get("name") in ("own", "own2")]
    results = [i["call_id"] for i in first.said if i["type"] == "function_call_output"]
    assert sorted(ids) == sorted(results)


@pytest.mark.parametrize(
    ("others", "goes_on"),
    [
        ([], True), ([scripted.SEARCH], True), ([RAN, RAN_OUTPUT], True), ([RAN], False),
        ([APPROVAL], False), ([CUSTOM], False), ([scripted.call("theirs", "{}", "t")], False),
    ],
)  # fmt: skip
async def test_what_only_the_caller_can_answer_ends_the_loop(others: Any, goes_on: bool) -> None:
    model = Scripted([[scripted.call("own"), *others], [scripted.message()]])
    answer = await loop(model).respond({**ASKED, "tools": [{"type": "function", "name": "theirs"}]})
    assert len(model.requests) == (2 if goes_on else 1)
    assert not any(item.get("name") == "own" for item in answer["output"])


async def test_calls_of_a_response_that_was_cut_are_not_run() -> None:
    model = Scripted([[scripted.call("own", '{"a": ')]], status="incomplete")
    answer = await loop(model).respond(ASKED)
    assert len(model.requests) == 1 and answer["status"] == "incomplete" and not answer["output"]


async def test_a_model_that_only_calls_is_stopped() -> None:
    answers: Any = [[scripted.call("own", f'{{"n": {n}}}', f"c{n}")] for n in range(9)]
    model = Scripted(answers)
    with pytest.raises(ModelError, match="called tools 2 times in a row"):
        await loop(model, most_rounds=2).respond(ASKED)
    assert model.requests[-1]["tool_choice"] == "none"


async def test_own_tools_are_not_shown() -> None:
    class Echoing(Scripted):
        async def respond(self, request: dict[str, Any]) -> dict[str, Any]:
            answer = await super().respond(request)
            return {**answer, "tools": [*request["tools"], "odd"]}

    theirs = {"type": "function", "name": "own2", "parameters": {}}
    answer = await loop(Echoing([[scripted.message()]])).respond({**ASKED, "tools": [theirs]})
    assert answer["tools"] == [theirs]


async def test_without_tools_everything_passes() -> None:
    model = Scripted([[scripted.call("own")]])
    plain = ResponsesLoop(model, None)
    answer = await plain.respond(ASKED)
    assert answer["output"] == plain.said == [scripted.call("own")]
    assert model.requests == [{**ASKED, "input": [
        {"type": "message", "role": "user", "content": "hi"}]}]  # fmt: skip
