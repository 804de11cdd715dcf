"""A model calls tools until it has an answer, and no model keeps the runtime busy for ever."""

import asyncio
import json
from typing import Any

import pytest

from caraway_ai.protocols import ChatChunk, ChatRequest
from caraway_ai.tool_loop import LoopSettings, LoopTools, ModelWithTools
from caraway_ai.tools import selecting
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import Arguments, Tool, ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import ModelError, ModelInputError
from tests.kit.scripted_chat import ScriptedChat, calling
from tests.kit.scripted_provider import completion
from tests.kit.tools import FakeTool, FixedTools, echoing, returning

ASKED: ChatRequest = {"model": "m", "messages": [{"role": "user", "content": "how many?"}]}
OTHER: Any = {"type": "function", "function": {"name": "theirs", "parameters": {}}}


def looping(
    chat: ScriptedChat, *tools: Tool, limits: ToolLimits | None = None, **settings: Any
) -> ModelWithTools:
    box = Toolbox(limits)
    box.sources = [FixedTools("own", tools)]
    selection = selecting.select(box, "all")
    return ModelWithTools(chat, LoopTools(selection, ToolCaller, LoopSettings(**settings)))


def results(request: ChatRequest) -> list[Any]:
    """The results of tools in a request, parsed."""
    return [json.loads(each["content"]) for each in request["messages"] if each["role"] == "tool"]


async def test_results_go_back_until_the_model_answers() -> None:
    chat = ScriptedChat(
        [
            calling(("count", '{"a": 1}'), ("echo", '{"b": 2}'), content="Let me see"),
            calling(("echo", "")),
            completion("there are 5"),
        ]
    )
    model = looping(chat, returning("count", 5), echoing("echo"))
    answer = await model.chat(ASKED)
    assert answer["choices"][0]["message"]["content"] == "there are 5"
    assert answer["usage"] == {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
    first, second, third = chat.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["count", "echo"]
    assistant = second["messages"][1]
    assert (assistant["role"], assistant["content"]) == ("assistant", "Let me see")
    assert [each["tool_call_id"] for each in second["messages"][2:]] == ["id0", "id1"]
    assert results(third) == [5, {"b": 2}, {}]
    assert ASKED["messages"] == [{"role": "user", "content": "how many?"}]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("echo", "{broken", "the arguments are not JSON"),
        ("echo", "[1]", "must be a JSON object"),
        ("echo", '{"x": "text"}', "argument 'x' must be of type integer"),
        ("ecoh", "{}", "no tool 'ecoh'; did you mean 'echo'?"),
        ("big", "{}", "bytes"),
        ("breaks", "{}", "tool 'breaks' failed"),
        ("slow", "{}", "was stopped after"),
    ],
)
async def test_a_wrong_call_goes_back_as_an_error(name: str, arguments: str, told: str) -> None:
    async def breaks(given: Arguments) -> Any:
        raise ZeroDivisionError("secret detail")

    async def sleeps(given: Arguments) -> Any:
        await asyncio.Event().wait()

    chat = ScriptedChat([calling((name, arguments)), completion("sorry")])
    model = looping(
        chat,
        echoing("echo", x={"type": "integer"}),
        returning("big", "x" * 100_000),
        FakeTool("breaks", breaks),
        FakeTool("slow", sleeps),
        limits=ToolLimits(timeout_s=0.05),
    )
    answer = await model.chat(ASKED)
    assert answer["choices"][0]["message"]["content"] == "sorry"
    (result,) = results(chat.requests[-1])
    assert told in result["error"]
    assert "secret" not in result["error"]


async def test_a_model_that_never_stops_is_told_to_answer_and_then_cut_off() -> None:
    numbers = iter(range(1000))

    class Endless(ScriptedChat):
        async def chat(self, request: ChatRequest) -> Any:
            await super().chat(request)
            if request.get("tool_choice") == "none" and self.obeys:
                return completion("enough")
            return calling(("echo", json.dumps({"n": next(numbers)})))

        obeys = True

    chat = Endless([completion()])
    answer = await looping(chat, echoing("echo"), most_rounds=3).chat(ASKED)
    assert answer["choices"][0]["message"]["content"] == "enough"
    assert len(chat.requests) == 4
    chat.obeys = False
    with pytest.raises(ModelError, match="called tools 3 times in a row"):
        await looping(chat, echoing("echo"), most_rounds=3).chat(ASKED)


async def test_repeated_calls_are_not_run_again() -> None:
    ran = []

    async def answer(arguments: Arguments) -> Any:
        ran.append(arguments)
        return "same"

    class Stubborn(ScriptedChat):
        async def chat(self, request: ChatRequest) -> Any:
            await super().chat(request)
            if request.get("tool_choice") == "none":
                return completion("fine")
            return calling(("t", '{"a": 1}'))

    chat = Stubborn([completion()])
    result = await looping(chat, FakeTool("t", answer), most_rounds=50).chat(ASKED)
    assert result["choices"][0]["message"]["content"] == "fine"
    assert len(ran) == 2
    assert "made before" in results(chat.requests[-1])[-1]["error"]
    assert len(chat.requests) == 5


async def test_tools_of_the_request_are_left_to_the_caller() -> None:
    chat = ScriptedChat([calling(("mine", "{}")), calling(("theirs", '{"q": 1}'), ("mine", "{}"))])
    asked = {**ASKED, "tools": [OTHER]}
    answer = await looping(chat, returning("mine", 1)).chat(asked)
    names = [each["function"]["name"] for each in chat.requests[0]["tools"]]
    assert names == ["theirs", "mine"]
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "theirs", "arguments": '{"q": 1}'}
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "custom", "custom": {"name": "theirs"}},
        {"type": "custom", "custom": "x"},
        {"type": "web_search", "function": 5},
    ],
)
async def test_tools_of_other_kinds_are_left_to_the_provider(tool: dict[str, Any]) -> None:
    call = {"id": "a", "type": "custom", "custom": {"name": "theirs", "input": "x"}}
    said = completion(None, tool_calls=[call])
    model = looping(ScriptedChat([said]), returning("mine", 1))
    answer = await model.chat({**ASKED, "tools": [tool]})
    assert answer["choices"][0]["message"]["tool_calls"] == [call]
    chunks = await streamed(looping(ScriptedChat([said]), returning("mine", 1)), ASKED)
    (fragment,) = (each for chunk in chunks for choice in chunk["choices"]
                   for each in choice["delta"].get("tool_calls", ()))  # fmt: skip
    assert fragment["custom"] == call["custom"]


async def test_a_tool_of_the_request_hides_one_of_the_runtime() -> None:
    chat = ScriptedChat([calling(("theirs", "{}"))])
    answer = await looping(chat, returning("theirs", 1)).chat({**ASKED, "tools": [OTHER]})
    assert answer["choices"][0]["message"]["tool_calls"]
    assert len(chat.requests[0]["tools"]) == 1


async def test_a_forced_choice_holds_for_the_first_answer() -> None:
    chat = ScriptedChat([calling(("t", "{}")), completion("done")])
    await looping(chat, returning("t", 1)).chat({**ASKED, "tool_choice": "required"})
    assert [request["tool_choice"] for request in chat.requests] == ["required", "auto"]
    chat = ScriptedChat([completion("no tools")])
    await looping(chat, returning("t", 1)).chat({**ASKED, "tool_choice": "none"})
    assert "tools" not in chat.requests[0]


async def test_several_answers_are_refused() -> None:
    with pytest.raises(ModelInputError, match="'n' must be 1"):
        await looping(ScriptedChat([completion()]), returning("t", 1)).chat({**ASKED, "n": 2})


async def streamed(model: ModelWithTools, request: ChatRequest) -> list[ChatChunk]:
    return [chunk async for chunk in model.stream(request)]


def text(chunks: list[ChatChunk]) -> str:
    choices = (choice for chunk in chunks for choice in chunk["choices"])
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def test_a_stream_has_the_text_of_all_rounds_and_no_calls() -> None:
    chat = ScriptedChat([calling(("t", '{"a": 1}'), content="Wait. "), completion("It is 5")])
    chunks = await streamed(looping(chat, echoing("t")), ASKED)
    assert text(chunks) == "Wait. It is 5"
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [each["finish_reason"] for each in choices if each["finish_reason"]] == ["stop"]
    assert not any("tool_calls" in each["delta"] for each in choices)
    assert [each["delta"]["role"] for each in choices if "role" in each["delta"]] == ["assistant"]
    assert {chunk["id"] for chunk in chunks} == {"c"}
    assert chunks[-1]["usage"]["total_tokens"] == 14
    assert [chunk for chunk in chunks if "usage" in chunk] == [chunks[-1]]
    assert results(chat.requests[1]) == [{"a": 1}]


async def test_a_stream_passes_calls_of_the_caller_on() -> None:
    both = calling(("t", "{}"), ("theirs", '{"q": 1}'))
    chat = ScriptedChat([both])
    chunks = await streamed(looping(chat, echoing("t")), {**ASKED, "tools": [OTHER]})
    fragments = [
        fragment
        for chunk in chunks
        for choice in chunk["choices"]
        for fragment in choice["delta"].get("tool_calls", ())
    ]
    assert {fragment["index"] for fragment in fragments} == {0}
    assert fragments[0]["function"]["name"] == "theirs"
    assert "".join(each["function"]["arguments"] for each in fragments) == '{"q": 1}'
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_progress_is_told_when_asked() -> None:
    chat = ScriptedChat([calling(("t", '{"a": 1}')), completion("5")])
    chunks = await streamed(looping(chat, echoing("t"), shows_progress=True), ASKED)
    assert text(chunks) == '\n[t {"a": 1}]\n5'


async def test_a_client_that_goes_away_stops_everything() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits(arguments: Arguments) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    chat = ScriptedChat([calling(("t", "{}"), ("t", '{"a": 1}'))])
    call = asyncio.ensure_future(looping(chat, FakeTool("t", waits)).chat(ASKED))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended.is_set()
    assert len(chat.requests) == 1


async def test_leaving_a_stream_leaves_that_of_the_provider() -> None:
    chat = ScriptedChat([completion("a long answer")])
    stream = looping(chat, echoing("t")).stream(ASKED)
    await anext(stream)
    await stream.aclose()
    assert chat.is_left.is_set()


@pytest.mark.parametrize("id_", [None, "", "same"])
async def test_own_calls_are_not_shown_whatever_their_ids_are(id_: str | None) -> None:
    answer = calling(("theirs", "{}"), ("echo", "{}"))
    message = answer["choices"][0]["message"]
    for call in message["tool_calls"]:
        call["id"] = id_
    message["tool_calls"].append({"type": "custom", "custom": {"name": "echo"}})
    shown = await looping(ScriptedChat([answer]), echoing("echo")).chat({**ASKED, "tools": [OTHER]})
    calls = shown["choices"][0]["message"]["tool_calls"]
    assert [call.get("function", call.get("custom"))["name"] for call in calls] == [
        "theirs",
        "echo",
    ]
    assert calls[1]["type"] == "custom"
