"""Messages through the `anthropic` client, a real server and a scripted provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from llmock.scenarios import Fail
from starlette.responses import JSONResponse

from tests.kit.models import ServedModels, llmock, manifest, served
from tests.kit.scripted_provider import ScriptedProvider, chunk, completion, scripted

if TYPE_CHECKING:
    import anthropic

USER: Any = [{"role": "user", "content": "Say hello"}]
TOOL: Any = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"id": "c1", "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}  # fmt: skip
DONE = b"data: [DONE]\n\n"
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7,
                                  "prompt_tokens_details": {"cached_tokens": 4}}}  # fmt: skip
KEYS = "runtime: {auth: {api-key: {keys: ['reader']}}}\n"


def client(of: ServedModels, key: str = "none") -> "anthropic.AsyncAnthropic":
    # Its types take a second to import, in each worker that collects this module.
    import anthropic

    return anthropic.AsyncAnthropic(base_url=of.url, api_key=key, max_retries=0)


@asynccontextmanager
async def asked(
    folder: Path, key: str = "none", more: str = ""
) -> "AsyncIterator[tuple[ScriptedProvider, anthropic.AsyncAnthropic]]":
    async with (
        scripted() as provider,
        served(folder, more + manifest(provider.url)) as caraway,
        client(caraway, key) as made,
    ):
        yield provider, made


async def test_a_request_becomes_a_chat_and_its_answer_a_message(tmp_path: Path) -> None:
    async with asked(tmp_path) as (provider, claude):
        answer = await claude.messages.create(
            model="chat", max_tokens=9, messages=USER, stop_sequences=["x"],
            system=[{"type": "text", "text": "Be brief"}], metadata={"user_id": "u"},
            extra_body={"temperature": 0.5},
        )  # fmt: skip
        (block,) = answer.content
        assert block.type == "text" and block.text == "hello"
        assert (answer.model, answer.role, answer.stop_reason) == ("chat", "assistant", "end_turn")
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 4)
        assert answer.id.startswith("msg_")
        assert provider.requests[-1] == {
            "model": "gpt-4o", "stream": False, "temperature": 0.5, "max_completion_tokens": 9,
            "stop": ["x"], "user": "u",
            "messages": [{"role": "system", "content": "Be brief"}, *USER],
        }  # fmt: skip


async def test_tools_are_called_by_the_caller_and_their_results_sent(tmp_path: Path) -> None:
    async with asked(tmp_path) as (provider, claude):
        provider.answers = [completion(None, tool_calls=[CALL]), completion("rain")]
        first = await claude.messages.create(
            model="chat", max_tokens=9, messages=USER, tools=[TOOL],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        )  # fmt: skip
        (block,) = first.content
        assert first.stop_reason == "tool_use" and block.type == "tool_use"
        assert (block.id, block.name, block.input) == ("c1", "weather", {"city": "Oslo"})
        sent = provider.requests[-1]
        assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)
        assert sent["tools"][0]["function"]["parameters"] == TOOL["input_schema"]
        result: Any = {"type": "tool_result", "tool_use_id": "c1",
                       "content": [{"type": "text", "text": "wet"}]}  # fmt: skip
        history: Any = [
            *USER, {"role": "assistant", "content": [each.to_dict() for each in first.content]},
            {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]},
        ]  # fmt: skip
        second = await claude.messages.create(
            model="chat", max_tokens=9, messages=history, tools=[TOOL]
        )
        assert second.content[0].to_dict() == {"type": "text", "text": "rain"}
        assert provider.requests[-1]["messages"][1:] == [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "wet"},
            {"role": "user", "content": "Well?"},
        ]


async def test_a_stream_of_text_is_read_by_the_client(tmp_path: Path) -> None:
    async with asked(tmp_path) as (provider, claude):
        provider.streams = [[chunk("hel"), chunk("lo"), chunk(finish="length"), USAGE, DONE]]
        raw = await claude.messages.create(model="chat", max_tokens=9, messages=USER, stream=True)
        assert [event.type async for event in raw] == [
            "message_start", "content_block_start", "content_block_delta", "content_block_delta",
            "content_block_stop", "message_delta", "message_stop",
        ]  # fmt: skip
        async with claude.messages.stream(model="chat", max_tokens=9, messages=USER) as stream:
            texts = [text async for text in stream.text_stream]
            final = await stream.get_final_message()
        assert texts == ["hel", "lo"]
        assert (final.stop_reason, final.model) == ("max_tokens", "chat")
        usage = final.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (1, 4, 2)


async def test_calls_of_tools_come_as_blocks_even_if_their_parts_are_mixed(tmp_path: Path) -> None:
    def part(index: int, arguments: str, **head: Any) -> dict[str, Any]:
        name = {"name": f"f{index}"} if head else {}
        call = {"index": index, **head, "function": {**name, "arguments": arguments}}
        return chunk(tool_calls=[call])

    async with asked(tmp_path) as (provider, claude):
        provider.streams = [[
            chunk("Let me see"), part(0, "", id="a", type="function"), part(0, '{"city":'),
            part(1, '{"city": "Rome"', id="b", type="function"), part(0, ' "Oslo"}'), part(1, "}"),
            chunk(finish="tool_calls"), DONE,
        ]]  # fmt: skip
        async with claude.messages.stream(
            model="chat", max_tokens=9, messages=USER, tools=[TOOL]
        ) as stream:
            final = await stream.get_final_message()
        told = [each.to_dict() for each in final.content]
        assert told == [
            {"type": "text", "text": "Let me see"},
            {"type": "tool_use", "id": "a", "name": "f0", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "b", "name": "f1", "input": {"city": "Rome"}},
        ]
        assert final.stop_reason == "tool_use"


async def test_errors_have_the_envelope_that_the_client_reads(tmp_path: Path) -> None:
    import anthropic

    async with asked(tmp_path) as (provider, claude):
        with pytest.raises(anthropic.NotFoundError) as absent:
            await claude.messages.create(model="nope", max_tokens=9, messages=USER)
        assert absent.value.body == {
            "type": "error",
            "error": {"type": "not_found_error", "message": "model 'nope' not found"},
        }
        with pytest.raises(anthropic.NotFoundError):
            await claude.messages.create(model="nope", max_tokens=9, messages=USER, stream=True)
        wrong: Any = [{"role": "robot", "content": "x"}]
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\].role"):
            await claude.messages.create(model="chat", max_tokens=9, messages=wrong)
        provider.answers = [JSONResponse({"error": {"message": "slow down"}}, 429)]
        with pytest.raises(anthropic.RateLimitError, match="rate_limit_error"):
            await claude.messages.create(model="chat", max_tokens=9, messages=USER)
        provider.streams = [[chunk("hel"), b"data: {broken\n\n"]]
        stream = await claude.messages.create(
            model="chat", max_tokens=9, messages=USER, stream=True
        )
        with pytest.raises(anthropic.APIStatusError, match="api_error"):
            [event async for event in stream]


async def test_the_key_of_the_client_is_the_key_of_the_runtime(tmp_path: Path) -> None:
    import anthropic

    async with asked(tmp_path, "reader", KEYS) as (_, claude):
        assert (await claude.messages.create(model="chat", max_tokens=9, messages=USER)).content
        other = claude.with_options(api_key="other")
        with pytest.raises(anthropic.AuthenticationError):
            await other.messages.create(model="chat", max_tokens=9, messages=USER)


async def test_other_methods_and_broken_bodies_have_the_envelope_too(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as http:
            for answer in (
                await http.get("/v1/messages"),
                await http.post("/v1/messages", content=b"{"),
                await http.post("/v1/messages", json={"model": "chat", "messages": USER}),
            ):
                told = answer.json()
                assert (told["type"], told["error"]["type"]) == ("error", "invalid_request_error")
            documented = (await http.get("/openapi.json")).json()["paths"]["/v1/messages"]["post"]
            schema = documented["responses"]["429"]["content"]["application/json"]["schema"]
            assert schema["required"] == ["type", "error"]


async def test_models_of_anthropic_see_images_and_thoughts_are_shown(tmp_path: Path) -> None:
    import anthropic

    with llmock() as server:
        text = (
            "models:\n  - from: anthropic:claude-sonnet\n    name: claude\n    params:\n"
            f"      endpoint: {server.base_url('anthropic')}\n"
            "      anthropic_api_key: k\n      max_retries: 0\n"
        )
        async with served(tmp_path, text) as caraway, client(caraway) as claude:
            image: Any = {"type": "image", "source": {
                "type": "base64", "media_type": "image/png", "data": "aGk="}}  # fmt: skip
            content: Any = [image, {"type": "text", "text": "What is it?"}]
            answer = await claude.messages.create(
                model="claude", max_tokens=64, messages=[{"role": "user", "content": content}]
            )
            assert answer.content and answer.content[0].type == "text"
            server.state.scenarios.add(Fail(529))
            with pytest.raises(anthropic.APIStatusError) as busy:
                await claude.messages.create(model="claude", max_tokens=64, messages=USER)
            assert (busy.value.status_code, "overloaded_error" in str(busy.value)) == (503, True)
