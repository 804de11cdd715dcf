"""Responses of a provider that has this API itself, through the `openai` client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from starlette.responses import JSONResponse

from caraway_ai.tool_loop import LoopSettings, LoopTools
from caraway_ai.tools import selecting
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from tests.kit.models import ServedModels, llmock, manifest, served
from tests.kit.scripted_provider import ScriptedProvider, scripted
from tests.kit.scripted_responses import (
    NOTE,
    PATH,
    SEARCH,
    THOUGHT,
    call,
    events,
    message,
    response,
)
from tests.kit.tools import FixedTools, echoing

THEIRS: Any = {"type": "function", "name": "theirs", "strict": False, "parameters": {}}
WEB: Any = {"type": "web_search"}


class City(BaseModel):
    name: str


@asynccontextmanager
async def native(
    folder: Path, *params: str, key: str = "none", more: str = ""
) -> AsyncIterator[tuple[ScriptedProvider, ServedModels]]:
    async with scripted(PATH) as provider:
        provider.answers = [response(message())]
        provider.streams = [events(message())]
        text = manifest(provider.url, "responses_api: enabled", *params) + more
        async with served(folder, text, key) as caraway:
            yield provider, caraway


def give_tools(caraway: ServedModels, rounds: int = 10) -> None:
    """Give every model a tool `echo`."""
    box = Toolbox(None)
    box.sources = [FixedTools("own", (echoing("echo"),))]
    settings = LoopSettings(rounds)
    tools = LoopTools(selecting.select(box, "all"), ToolCaller, settings)
    caraway.models.tools_of = lambda _state, _caller: tools


def without_ours(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without what the runtime sets."""
    kept = {name: value for name, value in event.items() if name != "sequence_number"}
    if "response" in kept:
        ours = ("id", "model", "store")
        response = kept["response"].items()
        kept["response"] = {name: value for name, value in response if name not in ours}
    return kept


async def test_what_only_the_provider_has_passes_in_both_directions(tmp_path: Path) -> None:
    prompts = ("system_prompt: Be kind", "openai_temperature: 0.5", "openai_max_tokens: 9",
               "openai_reasoning_effort: low")  # fmt: skip
    async with native(tmp_path, *prompts) as (provider, caraway):
        provider.answers = [response(THOUGHT, SEARCH, message(), tools=[WEB])]
        answer = await caraway.client.responses.create(
            model="chat", input="news?", tools=[WEB], include=["web_search_call.action.sources"],
            truncation="auto", max_tool_calls=3,
        )  # fmt: skip
        told: Any = answer.to_dict()
        assert told["output"] == [THOUGHT, SEARCH, message()]
        assert told["output"][2]["content"][0]["annotations"] == [NOTE]
        assert (told["model"], told["store"], told["tools"]) == ("chat", True, [WEB])
        assert told["id"] != "resp_theirs"
        assert told["usage"]["output_tokens_details"]["reasoning_tokens"] == 2
        assert provider.requests[-1] == {
            "model": "gpt-4o", "stream": False, "store": False, "tools": [WEB],
            "input": [{"role": "system", "content": "Be kind"},
                      {"type": "message", "role": "user", "content": "news?"}],
            "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
            "truncation": "auto", "max_tool_calls": 3, "temperature": 0.5,
            "max_output_tokens": 9, "reasoning": {"effort": "low"},
        }  # fmt: skip


async def test_every_event_of_a_stream_keeps_its_shape(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        sent = events(THOUGHT, SEARCH, message(), call("theirs"), new_field="kept")
        strange = {"type": "response.tomorrow.delta", "output_index": 2, "x": 1}
        sent.insert(4, strange)
        provider.streams = [sent]
        create: Any = caraway.client.responses.create
        stream = await create(model="chat", input="x", tools=[THEIRS], stream=True)
        got = [event.to_dict() async for event in stream]
        assert [event["sequence_number"] for event in got] == list(range(len(sent)))
        assert [without_ours(event) for event in got] == [without_ours(event) for event in sent]
        async with caraway.client.responses.stream(model="chat", input="x") as helper:
            final = await helper.get_final_response()
        assert final.output_text == "hello"
        provider.answers = [response(message('{"name": "Oslo"}'))]
        parsed = await caraway.client.responses.parse(model="chat", input="?", text_format=City)
        assert parsed.output_parsed == City(name="Oslo")
        assert provider.requests[-1]["text"]["format"]["name"] == "City"


async def test_tools_of_the_runtime_run_within_one_response(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        give_tools(caraway)
        own = call("echo", '{"a": 1}')
        second = message("done", "msg_2")
        provider.streams = [events(THOUGHT, message("let me see"), own), events(SEARCH, second)]
        async with caraway.client.responses.stream(model="chat", input="go", tools=[WEB]) as stream:
            seen = [event async for event in stream]
            final: Any = await stream.get_final_response()
        kinds = [item.type for item in final.output]
        assert kinds == ["reasoning", "message", "web_search_call", "message"]
        assert [e.output_index for e in seen if e.type == "response.output_item.done"] == [
            0, 1, 2, 3
        ]  # fmt: skip
        assert not [event for event in seen if "function_call" in event.type]
        assert [event.type for event in seen].count("response.created") == 1
        assert final.usage.total_tokens == 14
        first, again = provider.requests
        assert first["tools"][0] == WEB
        assert (first["tools"][1]["name"], first["tools"][1]["strict"]) == ("echo", False)
        result = {"type": "function_call_output", "call_id": "c1", "output": '{"a": 1}'}
        assert again["input"][1:] == [THOUGHT, message("let me see"), own, result]

        # The next request includes the calls, too, which the caller never saw.
        provider.answers = [response(message("bye", "msg_3"))]
        await caraway.client.responses.create(
            model="chat", input="thanks", previous_response_id=final.id
        )
        asked = provider.requests[-1]
        assert [each["type"] for each in asked["input"]] == [
            "message", "reasoning", "message", "function_call", "function_call_output",
            "web_search_call", "message", "message",
        ]  # fmt: skip
        assert "previous_response_id" not in asked
        assert asked["include"] == ["reasoning.encrypted_content"]


async def test_calls_of_the_callers_functions_are_the_callers(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        give_tools(caraway)
        provider.answers = [response(call("echo"), call("theirs", id_="c2"))]
        create: Any = caraway.client.responses.create
        answer = await create(model="chat", input="go", tools=[THEIRS])
        assert [item.name for item in answer.output] == ["theirs"]
        result = {"type": "function_call_output", "call_id": "c2", "output": "42"}
        provider.answers = [response(message())]
        await create(model="chat", input=[result], previous_response_id=answer.id)
        assert [each.get("call_id") for each in provider.requests[-1]["input"]] == [
            None, "c2", "c2"
        ]  # fmt: skip


async def test_a_model_that_never_stops_to_call_ends_with_an_error(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        give_tools(caraway, rounds=2)
        provider.answers = [response(call("echo", f'{{"a": {n}}}', f"c{n}")) for n in range(9)]
        with pytest.raises(openai.InternalServerError) as refusal:
            await caraway.client.responses.create(model="chat", input="go")
        assert "tool_recursion_limit" in refusal.value.response.text
        assert [each.get("tool_choice") for each in provider.requests] == [None, None, "none"]


async def test_an_answer_that_is_not_whole_is_an_error(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        failed = response(status="failed", error={"code": "server_error", "message": "sk-x"})
        cut = events(message())[:-1]
        provider.streams = [
            cut,
            [*cut, {"type": "response.failed", "response": failed}],
            [*cut, {"type": "error", "code": "rate_limit_exceeded", "message": "m"}],
            [*cut, b"data: {not json\n\n"],
            [*cut, {"no": "type"}],
            [*cut, {"type": "response.completed", "response": {"status": "completed"}}],
        ]
        create: Any = caraway.client.responses.create
        for words in ("ended before", "failed in the middle", "limits the rate", "not JSON",
                      "no type", "list of items"):  # fmt: skip
            got = [e async for e in await create(model="chat", input="x", stream=True)]
            assert [e.type for e in got[-2:]] == ["response.output_item.done", "response.failed"]
            told = got[-1].response
            assert (told.status, words in told.error.message) == ("failed", True)
            assert told.output[0].to_dict() == message()
            assert "sk-x" not in str(told)
        for bad in (failed, response(status="in_progress"), {"output": "x"}, {"x": 1}):
            provider.answers = [bad]
            with pytest.raises(openai.InternalServerError):
                await create(model="chat", input="x")
        provider.streams = [events(message(), end="incomplete",
                                   incomplete_details={"reason": "max_output_tokens"})]  # fmt: skip
        got = [e async for e in await create(model="chat", input="x", stream=True)]
        assert got[-1].response.incomplete_details.reason == "max_output_tokens"


async def test_a_client_that_leaves_stops_the_call(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        provider.streams = [[*events(message())[:4], asyncio.Event()]]
        create: Any = caraway.client.responses.create
        async with await create(model="chat", input="x", stream=True) as stream:
            assert (await anext(aiter(stream))).type == "response.created"
        await provider.left.wait()


async def test_what_the_provider_would_keep_is_refused_or_kept_here(tmp_path: Path) -> None:
    keys = "runtime: {auth: {api-key: {keys: [one, two]}}}\n"
    async with native(tmp_path, key="one", more=keys) as (provider, caraway):
        give_tools(caraway)
        create: Any = caraway.client.responses.create
        for field, value in (("background", True), ("conversation", "c"), ("input", []),
                             ("input", [{"type": "item_reference", "id": "x"}]),
                             ("previous_response_id", "resp_theirs"),
                             ("input", ["x"]), ("input", None), ("input", {"a": 1}),
                             ("tools", ["x"]), ("tools", [{}]), ("tools", "x"),
                             ("tools", [{"type": "function", "name": 1}]), ("include", 1),
                             ("include", [[]]), ("reasoning", []), ("text", "x")):  # fmt: skip
            with pytest.raises(openai.BadRequestError, match=field):
                await create(**{"model": "chat", "input": "x", "extra_body": {field: value}})
        assert not provider.requests
        strange = {"id": "x", "type": "function_call", "name": ["echo"], "call_id": 1}
        provider.answers = [response(strange, tools=["x", WEB]), response(message())]
        assert (await create(model="chat", input="x")).output[0].id == "x"
        answer = await create(model="chat", input="x")
        assert (await caraway.client.responses.retrieve(answer.id)).output_text == "hello"
        others = caraway.client.with_options(api_key="two").responses
        with pytest.raises(openai.NotFoundError):
            await others.retrieve(answer.id)
        unkept = await create(model="chat", input="x", store=False)
        with pytest.raises(openai.NotFoundError):
            await caraway.client.responses.retrieve(unkept.id)


async def test_calls_are_counted_and_errors_have_a_status(tmp_path: Path) -> None:
    async with native(tmp_path) as (provider, caraway):
        create: Any = caraway.client.responses.create
        assert [e async for e in await create(model="chat", input="a secret", stream=True)]
        provider.answers = [JSONResponse({"error": {"message": "no"}}, 404)]
        with pytest.raises(openai.InternalServerError) as refusal:
            await create(model="chat", input="x")
        assert "responses_api: disabled" in refusal.value.response.text
        provider.answers = [JSONResponse({"error": {"message": "no"}}, 401)]
        with pytest.raises(openai.AuthenticationError):
            await create(model="chat", input="x")
        rows = caraway.history.table(None).to_pylist()
        assert [row["task"] for row in rows] == ["ai_completion", "ai_chat"] * 3
        labels = dict(rows[1]["labels"])
        assert (labels["prompt_tokens"], labels["completion_tokens"]) == ("3", "4")
        assert "first_token_ms" in labels
        assert "secret" not in str(rows)
        assert caraway.models.tallies.prompt_tokens["chat",] == 3


async def test_a_server_that_is_not_ours(tmp_path: Path) -> None:
    with llmock() as server:
        text = manifest(server.base_url(), "responses_api: enabled")
        async with served(tmp_path, text) as caraway:
            responses = caraway.client.responses
            first = await responses.create(model="chat", input="Say hello")
            assert first.output_text
            async with responses.stream(
                model="chat", input="Again", previous_response_id=first.id
            ) as stream:
                final = await stream.get_final_response()
            assert final.output_text
            assert (final.model, final.previous_response_id) == ("chat", first.id)
