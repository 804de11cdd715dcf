"""Chats through the `openai` client, a real server and a real provider."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from llmock.scenarios import Fail, Match, Reply, ToolCall
from llmock.testing import LLMockServer
from pydantic import BaseModel

from tests.kit.models import KEY, USER, manifest, served
from tests.kit.scripted_provider import chunk, scripted

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class City(BaseModel):
    name: str
    people: int


async def test_create_answers_with_the_name_of_the_manifest(
    tmp_path: Path, provider: LLMockServer
) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        answer = await caraway.client.chat.completions.create(model="chat", messages=USER)
        assert answer.model == "chat"
        assert answer.object == "chat.completion"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.choices[0].message.content
        assert answer.usage is not None and answer.usage.total_tokens > 0
        assert [model.id for model in (await caraway.client.models.list()).data] == ["chat"]
        assert (await caraway.client.models.retrieve("chat")).owned_by == "openai"


async def test_the_helpers_of_the_client_work(tmp_path: Path, provider: LLMockServer) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        completions = caraway.client.chat.completions
        parsed = await completions.parse(model="chat", messages=USER, response_format=City)
        assert isinstance(parsed.choices[0].message.parsed, City)
        async with completions.stream(model="chat", messages=USER) as stream:
            events = [event.type async for event in stream]
            final = await stream.get_final_completion()
        assert events.count("content.delta") > 1
        assert final.choices[0].message.content
        provider.state.scenarios.add(Reply(tool_calls=(ToolCall("weather", {"city": "Paris"}),)))
        async with completions.stream(model="chat", messages=USER, tools=[TOOL]) as stream:
            call = (await stream.get_final_completion()).choices[0].message.tool_calls
        assert call is not None and call[0].function.parsed_arguments == {"city": "Paris"}


async def test_tool_calls_go_to_the_caller_and_results_to_the_model(
    tmp_path: Path, provider: LLMockServer
) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        completions = caraway.client.chat.completions
        provider.state.scenarios.add(Reply(tool_calls=(ToolCall("weather", {"city": "Oslo"}),)))
        first = await completions.create(
            model="chat", messages=USER, tools=[TOOL], tool_choice="required"
        )
        assert first.choices[0].finish_reason == "tool_calls"
        message: Any = first.choices[0].message
        call = message.tool_calls[0]
        assert call.function.name == "weather"
        history: Any = [*USER, message.to_dict(),
                        {"role": "tool", "tool_call_id": call.id, "content": "rain"}]  # fmt: skip
        second = await completions.create(model="chat", messages=history, tools=[TOOL])
        assert second.choices[0].message.content


async def test_usage_comes_only_when_asked_for(tmp_path: Path, provider: LLMockServer) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        body = {"model": "chat", "messages": USER, "stream": True}
        async with httpx.AsyncClient() as client:
            url = f"{caraway.url}/v1/chat/completions"
            plain = await client.post(url, json=body)
            asked = await client.post(url, json={**body, "stream_options": {"include_usage": True}})
        assert plain.headers["content-type"].startswith("text/event-stream")
        assert plain.text.endswith("data: [DONE]\n\n")
        assert "usage" not in plain.text
        assert '"choices":[]' in asked.text.split("\n\n")[-3].replace(" ", "")
        assert "total_tokens" in asked.text.split("\n\n")[-3]


FAILURES: list[tuple[Fail, type[openai.APIStatusError], int, str | None]] = [
    (Fail(400, message="no such thing"), openai.BadRequestError, 400, "model.invalid"),
    (Fail(401), openai.AuthenticationError, 401, "invalid_api_key"),
    (Fail(402), openai.APIStatusError, 402, "insufficient_quota"),
    (Fail(429, retry_after=3), openai.RateLimitError, 429, "rate_limit_exceeded"),
    (Fail(503), openai.InternalServerError, 503, "model.unavailable"),
    (Fail(504), openai.InternalServerError, 504, "model.timeout"),
    (Fail(500), openai.InternalServerError, 500, None),
]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_of_the_provider_has_its_own_status(
    tmp_path: Path, provider: LLMockServer, stream: bool
) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        create: Any = caraway.client.chat.completions.create
        for fail, kind, status, code in FAILURES:
            provider.state.scenarios.clear()
            # A refused key has the model checked, which must not use the failure up.
            provider.state.scenarios.add(replace(fail, match=Match(path="*/chat/completions")))
            with pytest.raises(kind) as caught:
                await create(model="chat", messages=USER, stream=stream)
            assert caught.value.status_code == status
            assert caught.value.code == code
            assert KEY not in caught.value.response.text
            assert "chat" in caught.value.response.text
            if status == 429:
                assert caught.value.response.headers["retry-after"] == "3"
            if status == 500:
                assert isinstance(caught.value.response.json()["error"], str)


async def test_an_unknown_model_is_404_without_a_body(
    tmp_path: Path, provider: LLMockServer
) -> None:
    async with served(tmp_path, manifest(provider.base_url())) as caraway:
        for stream in (False, True):
            create: Any = caraway.client.chat.completions.create
            with pytest.raises(openai.NotFoundError) as caught:
                await create(model="none", messages=USER, stream=stream)
            assert caught.value.response.content == b""


async def test_keys_are_asked_for(tmp_path: Path, provider: LLMockServer) -> None:
    text = manifest(provider.base_url()) + "runtime: {auth: {api-key: {keys: ['k-read:ro']}}}\n"
    async with served(tmp_path, text, key="k-read") as caraway:
        create: Any = caraway.client.chat.completions.create
        assert (await create(model="chat", messages=USER)).choices
        with pytest.raises(openai.AuthenticationError):
            await caraway.client.with_options(api_key="x").chat.completions.create(
                model="chat", messages=USER
            )


async def test_too_many_calls_at_once_get_429(tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with scripted() as double:
        text = manifest(double.url, "max_concurrent_requests: 1", "max_queued_requests: 0")
        double.streams = [[chunk("one"), hold, chunk(finish="stop")]]
        async with served(tmp_path, text) as caraway:
            create: Any = caraway.client.chat.completions.create
            stream = await create(model="chat", messages=USER, stream=True)
            with pytest.raises(openai.RateLimitError) as caught:
                await create(model="chat", messages=USER)
            assert caught.value.code == "rate_limit_exceeded"
            assert int(caught.value.response.headers["retry-after"]) > 0
            hold.set()
            assert [part async for part in stream]
            assert (await create(model="chat", messages=USER)).choices
