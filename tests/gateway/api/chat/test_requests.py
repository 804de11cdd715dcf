"""Requests to the provider, and responses to the client, field by field."""

from pathlib import Path
from typing import Any

import httpx
from starlette.responses import JSONResponse

from tests.kit.models import USER, manifest, served
from tests.kit.scripted_provider import completion, scripted

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "1"}


async def test_every_field_reaches_the_provider(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "temperature": 0.5, "top_p": 0.9, "n": 1, "seed": 7, "stop": ["a"], "logprobs": True,
        "top_logprobs": 2, "logit_bias": {"50256": -100}, "presence_penalty": 0.1,
        "frequency_penalty": 0.2, "user": "u", "max_completion_tokens": 9,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto",
        "parallel_tool_calls": False, "reasoning_effort": "low", "service_tier": "auto",
        "metadata": {"a": "b"}, "store": False, "prompt_cache_key": "k", "min_p": 0.1,
    }  # fmt: skip
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [*USER, {"role": "user", "content": [{"type": "text", "text": "?"}, image]}]
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            answer = await client.post(
                "/v1/chat/completions", json={"model": "chat", "messages": messages, **fields}
            )
        assert answer.status_code == 200
        assert answer.json() == {**completion(), "model": "chat"}
        assert provider.requests == [
            {"model": "gpt-4o", "messages": messages, "stream": False, **fields}
        ]


async def test_defaults_and_the_system_prompt_reach_the_provider(tmp_path: Path) -> None:
    async with scripted() as provider:
        text = manifest(
            provider.url, "system_prompt: Be brief", "openai_temperature: 0.25",
            "openai_max_tokens: 5", "openai_org_id: o",
        )  # fmt: skip
        async with served(tmp_path, text) as caraway:
            create: Any = caraway.client.chat.completions.create
            await create(model="chat", messages=USER)
            await create(model="chat", messages=USER, max_completion_tokens=7, temperature=1)
    first, second = provider.requests
    assert first["messages"][0] == {"role": "system", "content": "Be brief"}
    assert (first["temperature"], first["max_tokens"]) == (0.25, 5)
    assert (second["temperature"], second["max_completion_tokens"]) == (1, 7)
    assert "max_tokens" not in second
    assert provider.headers[0]["openai-organization"] == "o"


WRONG: list[tuple[Any, str | None]] = [
    ([], None),
    ({"messages": USER}, "model"),
    ({"model": "chat"}, "messages"),
    ({"model": "chat", "messages": []}, "messages"),
    ({"model": "chat", "messages": USER * 501}, "messages"),
    ({"model": "chat", "messages": ["hello"]}, "messages[0]"),
    ({"model": "chat", "messages": [{"role": "boss", "content": "x"}]}, "messages[0].role"),
    ({"model": "chat", "messages": [{"role": "user"}]}, "messages[0].content"),
    ({"model": "chat", "messages": [{"role": "user", "content": []}]}, "messages[0].content"),
    ({"model": "chat", "messages": [RESULT]}, "messages[0]"),
    ({"model": "chat", "messages": [*USER, ASKED]}, "messages"),
    ({"model": "chat", "messages": [*USER, ASKED, *USER]}, "messages[2]"),
    ({"model": "chat", "messages": [*USER, ASKED, RESULT, RESULT]}, "messages[3]"),
    ({"model": "chat", "messages": USER, "stream": "yes"}, "stream"),
    ({"model": "chat", "messages": USER, "n": 0}, "n"),
    ({"model": "chat", "messages": USER, "temperature": 3}, "temperature"),
    ({"model": "chat", "messages": USER, "stream_options": {}}, "stream_options"),
    ({"model": "chat", "messages": USER, "top_logprobs": 1}, "top_logprobs"),
    ({"model": "chat", "messages": USER, "tools": [{}]}, "tools[0]"),
    ({"model": "chat", "messages": USER, "max_tokens": True}, "max_tokens"),
]  # fmt: skip


async def test_a_wrong_request_is_refused_by_field(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            for body, param in WRONG:
                answer = await client.post("/v1/chat/completions", json=body)
                assert answer.status_code == 400
                error = answer.json()["error"]
                assert (error["param"], error["type"]) == (param, "invalid_request_error")
        assert not provider.requests


async def test_a_body_that_is_not_json_is_refused(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            for content in (b"", b"{", b'{"model": "a", "model": "b"}', b"\xff"):
                answer = await client.post("/v1/chat/completions", content=content)
                assert answer.status_code == 400
                assert "not JSON" in answer.json()["error"]["message"]


async def test_a_context_that_is_too_long_is_400_with_the_count(tmp_path: Path) -> None:
    words = "This model's maximum context length is 8192 tokens. However, your messages resulted "
    error = {"message": words + "in 10001 tokens.", "code": "context_length_exceeded"}
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.answers = [JSONResponse({"error": error}, 400)]
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            answer = await client.post(
                "/v1/chat/completions", json={"model": "chat", "messages": USER}
            )
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert "10001" in answer.json()["error"]["message"]


DAMAGED: list[tuple[Any, str]] = [
    ({"choices": []}, "no choices"),
    ({"choices": [{"index": 0}]}, "no message"),
    ({"choices": [{"index": 0, "message": {"content": "half"}}]}, "finish_reason"),
    ([1], "no choices"),
]


async def test_a_damaged_answer_is_an_error(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            for answer, words in DAMAGED:
                provider.answers = [JSONResponse(answer)]
                got = await client.post(
                    "/v1/chat/completions", json={"model": "chat", "messages": USER}
                )
                assert got.status_code == 500
                assert words in got.json()["error"]
