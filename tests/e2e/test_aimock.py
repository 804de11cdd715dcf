"""`@copilotkit/aimock` as the provider of models, with all its faults; see `make test-npm`."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.kit.aimock import KEY, Aimock, aimock
from tests.kit.models import ServedModels, served
from tests.kit.runtime import running

pytestmark = pytest.mark.full
TEXT = "one two three four five six seven eight nine ten"
CALL = {"id": "c1", "name": "f", "arguments": {"a": 1}}
STATUSES = (400, 401, 402, 404, 408, 413, 422, 429, 500, 502, 503, 529)
COUNT = {"query": "SELECT count(*) AS n FROM orders"}
FIXTURES: list[Any] = [
    {"match": {"userMessage": "cut"}, "response": {"content": TEXT}, "truncateAfterChunks": 2},
    {"match": {"userMessage": "lost"}, "response": {"content": TEXT},
     "latency": 50, "disconnectAfterMs": 120},
    *({"match": {"userMessage": f"status {status}"},
       "response": {"error": {"message": "words of it"}, "status": status, "retryAfter": 7}}
      for status in STATUSES),
    {"match": {"userMessage": "again", "sequenceIndex": 0},
     "response": {"error": {"message": "busy"}, "status": 503}},
    {"match": {"userMessage": "again"}, "response": {"content": TEXT}},
    {"match": {"userMessage": "call"}, "response": {"toolCalls": [CALL]}},
    {"match": {"userMessage": "both"},
     "response": {"blocks": [{"type": "toolCall", **CALL}, {"type": "text", "text": "after"}]}},
    {"match": {"userMessage": "think"}, "response": {"content": TEXT, "reasoning": "well"}},
    {"match": {"userMessage": "count", "hasToolResult": False},
     "response": {"toolCalls": [{"name": "sql", "arguments": COUNT}]}},
    {"match": {"userMessage": "count", "toolResultContains": '"n": 2'},
     "response": {"content": "there are two"}},
    {"match": {"userMessage": "hello"}, "response": {"content": TEXT}},
    {"match": {"inputText": "vector"}, "response": {"embedding": [0.5] * 8}},
]  # fmt: skip
LIMITS = "max_retries: 0, silence_timeout: 1s"
BOTH = f"{LIMITS}, request_timeout: 1s"
MODELS = f"""
models:
  - {{from: openai:m, name: openai, params: {{endpoint: URL/v1, openai_api_key: {KEY}, {BOTH}}}}}
  - {{from: azure:m, name: azure, params: {{endpoint: URL, azure_api_key: {KEY}, {BOTH}}}}}
  - {{from: anthropic:m, name: anthropic,
      params: {{endpoint: URL, anthropic_api_key: {KEY}, {BOTH}}}}}
  - {{from: bedrock:m, name: bedrock, params: {{endpoint: URL, aws_access_key_id: x,
      aws_secret_access_key: x, aws_region: us-east-1, {LIMITS}}}}}
  - {{from: openai:m, name: patient,
      params: {{endpoint: URL/v1, openai_api_key: {KEY}, max_retries: 1}}}}
  - {{from: openai:m, name: keyless, params: {{endpoint: URL/v1, openai_api_key: x, {LIMITS}}}}}
"""
PROVIDERS = ("openai", "azure", "anthropic", "bedrock")
WIRES = ("openai", "azure", "anthropic")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as server:
        yield server


@pytest.fixture(scope="module")
def unkeyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    # It knows bearer tokens only, and Bedrock signs.
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES, is_open=True) as server:
        yield server


@pytest.fixture
def of(keyed: Aimock, unkeyed: Aimock, tmp_path: Path) -> Any:
    @asynccontextmanager
    async def serving(model: str, **rates: float) -> AsyncIterator[ServedModels]:
        server = unkeyed if model == "bedrock" else keyed
        async with served(tmp_path, MODELS.replace("URL", server.url)) as caraway:
            server.faults(**rates)
            try:
                yield caraway
            finally:
                server.faults()

    return serving


async def ask(caraway: ServedModels, model: str, words: str, *, stream: bool = False) -> Any:
    """Return the text, the calls and how it ended."""
    create: Any = caraway.client.chat.completions.create
    messages = [{"role": "user", "content": words}]
    if not stream:
        choice = (await create(model=model, messages=messages)).choices[0]
        calls = [call.function for call in choice.message.tool_calls or ()]
        told = "".join(f"{call.name}{json.loads(call.arguments)}" for call in calls)
        return choice.message.content or "", told, choice.finish_reason
    text = name = arguments = end = ""
    async for chunk in await create(model=model, messages=messages, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            end = choice.finish_reason or end
            for call in choice.delta.tool_calls or ():
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    return text, f"{name}{json.loads(arguments)}" if name else "", end


@pytest.mark.parametrize("model", PROVIDERS)
async def test_answers_and_calls_come_back(of: Any, model: str) -> None:
    async with of(model) as caraway:
        # boto3 cannot read the start of a text in the streams that aimock makes for Bedrock.
        for stream in (False, True) if model != "bedrock" else (False,):
            assert await ask(caraway, model, "hello", stream=stream) == (TEXT, "", "stop")
            assert await ask(caraway, model, "think", stream=stream) == (TEXT, "", "stop")
            both = await ask(caraway, model, "both", stream=stream)
            assert both == ("after", "f{'a': 1}", "tool_calls")
        for stream in (False, True):
            called = await ask(caraway, model, "call", stream=stream)
            assert called == ("", "f{'a': 1}", "tool_calls")


EXPECTED = {400: 400, 401: 401, 402: 402, 404: 500, 408: 504, 413: 400, 422: 400, 429: 429,
            500: 500, 502: 503, 503: 503, 529: 503}  # fmt: skip


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_status_has_one_of_ours(of: Any, model: str, stream: bool) -> None:
    async with of(model) as caraway:
        for status in STATUSES:
            with pytest.raises(openai.APIStatusError) as caught:
                await ask(caraway, model, f"status {status}", stream=stream)
            assert caught.value.status_code == EXPECTED[status], status
            waits = caught.value.response.headers.get("retry-after")
            assert (waits == "7") is (status in (429, 502, 503, 529)) or waits == "2", status
        with pytest.raises(openai.InternalServerError):
            await ask(caraway, model, "no fixture has these words", stream=stream)


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "rate", "status", "words"),
    [
        ("dropRate", 1, 500, "its provider failed .status 500."),
        ("malformedRate", 1, 500, "is damaged|before the answer was complete"),
        ("disconnectRate", 1, 503, "closed the connection without an answer"),
        ("rateLimitRate", 1, 429, "limits the rate; try again in 1 s"),
        ("latencyMs", 2500, 504, "did not respond in time"),
    ],
)
async def test_faults_of_every_request(
    of: Any, model: str, stream: bool, fault: str, rate: float, status: int, words: str
) -> None:
    async with of(model, **{fault: rate}) as caraway:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(caraway, model, "hello", stream=stream)
        assert caught.value.status_code == status
        assert re.search(words, caught.value.response.text)


@pytest.mark.parametrize("model", WIRES)
async def test_a_stream_that_is_cut_is_an_error(of: Any, model: str) -> None:
    async with of(model) as caraway:
        with pytest.raises(openai.APIError, match=r"closed the connection|lost before"):
            await ask(caraway, model, "cut", stream=True)
        with pytest.raises(openai.APIError, match="was lost before the answer was complete"):
            await ask(caraway, model, "lost", stream=True)


async def test_a_failure_is_tried_again(of: Any) -> None:
    async with of("patient") as caraway:
        assert (await ask(caraway, "patient", "again"))[0] == TEXT


async def test_a_wrong_key_is_told(of: Any) -> None:
    async with of("keyless") as caraway:
        with pytest.raises(openai.AuthenticationError, match="'openai_api_key'"):
            await ask(caraway, "keyless", "hello")


@pytest.mark.parametrize("model", WIRES)
async def test_responses_and_their_faults(of: Any, model: str) -> None:
    async with of(model) as caraway:
        create: Any = caraway.client.responses.create
        whole = await create(model=model, input="hello")
        assert (whole.output_text, whole.status) == (TEXT, "completed")
        (called,) = (await create(model=model, input="call")).output
        assert (called.type, called.name, json.loads(called.arguments)) == (
            "function_call", "f", {"a": 1},
        )  # fmt: skip
        events = [each async for each in await create(model=model, input="hello", stream=True)]
        assert events[-1].type == "response.completed"
        assert "".join(e.delta for e in events if e.type.endswith("text.delta")) == TEXT
        lost = [each async for each in await create(model=model, input="lost", stream=True)]
        assert lost[-1].type == "response.failed"
        assert "was lost" in lost[-1].response.error.message
        with pytest.raises(openai.RateLimitError):
            await create(model=model, input="status 429")


RUNTIME = """
    datasets:
      - {from: 'memory:orders', name: orders, params: {data: '[{"id": 1}, {"id": 2}]'}}
    models:
      - {from: openai:m, name: openai, params: {endpoint: URL/v1, openai_api_key: KEY, tools: sql}}
      - {from: azure:m, name: azure, params: {endpoint: URL, azure_api_key: KEY, tools: sql}}
      - {from: anthropic:m, name: anthropic,
         params: {endpoint: URL, anthropic_api_key: KEY, tools: sql}}
    embeddings:
      - {from: openai:e, name: e, params: {endpoint: URL/v1, openai_api_key: KEY, dimensions: 8}}
"""


async def test_tools_are_called_and_texts_embedded(tmp_path: Path, keyed: Aimock) -> None:
    manifest = RUNTIME.replace("URL", keyed.url).replace("KEY", KEY)
    async with running(tmp_path, manifest) as runtime:
        for model in WIRES:
            asked = {"model": model, "messages": [{"role": "user", "content": "count"}]}
            answer = await runtime.api.post("/v1/chat/completions", json=asked)
            assert "there are two" in answer.text, model
            streamed = await runtime.api.post(
                "/v1/chat/completions", json={**asked, "stream": True}
            )
            assert "there" in streamed.text and streamed.text.endswith("data: [DONE]\n\n"), model
            said = await runtime.api.post("/v1/responses", json={"model": model, "input": "count"})
            assert "there are two" in said.text, model
        embedded = await runtime.api.post(
            "/v1/embeddings", json={"model": "e", "input": ["vector"]}
        )
        assert embedded.status_code == 200, embedded.text
        assert len(embedded.json()["data"][0]["embedding"]) == 8
