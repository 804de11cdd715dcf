"""The provider over the OpenAI wire, against a real server with faults."""

import socket
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from llmock.scenarios import Fail, Reply, StreamFault
from llmock.testing import LLMockServer

from caraway_ai import hosting
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from tests.kit.models import KEY, USER, built, llmock
from tests.kit.scripted_provider import chunk, scripted


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with llmock() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server: LLMockServer) -> None:
    server.state.scenarios.clear()


async def test_an_answer_comes_back_whole(server: LLMockServer) -> None:
    model = built("openai", server.base_url())
    answer = await model.chat({"messages": USER, "temperature": 0.5})
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] > 0
    await model.aclose()


async def test_a_stream_ends_with_its_usage(server: LLMockServer) -> None:
    model = built("openai", server.base_url())
    chunks = [chunk async for chunk in model.stream({"messages": USER})]
    text = "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
    whole = await model.chat({"messages": USER})
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    await model.aclose()


@pytest.mark.parametrize(
    ("fault", "words"),
    [("truncate", "before the answer was complete"), ("malformed", "is not JSON"),
     ("disconnect", "connection to its provider was lost")],
)  # fmt: skip
async def test_a_damaged_stream_is_an_error(server: LLMockServer, fault: str, words: str) -> None:
    server.state.scenarios.add(StreamFault(fault, after_chunks=2))  # type: ignore[arg-type] # one of its kinds
    model = built("openai", server.base_url())
    got = []
    with pytest.raises(ModelError, match=words):
        async with aclosing(model.stream({"messages": USER})) as chunks:
            async for chunk in chunks:
                got.append(chunk)
    assert got
    await model.aclose()


@pytest.mark.parametrize(
    ("fail", "kind", "code"),
    [
        (Fail(401, message=f"Incorrect API key: {KEY}"), ModelError, "model.auth"),
        (Fail(402), ModelError, "model.quota"),
        (Fail(403), ModelError, "model.auth"),
        (Fail(404), ModelError, "model.not_found"),
        (Fail(408), ModelAwayError, "model.timeout"),
        (Fail(429, retry_after=7), ModelAwayError, "model.rate_limit"),
        (Fail(429, code="insufficient_quota"), ModelError, "model.quota"),
        (Fail(500), ModelError, "model.failed"),
        (Fail(503), ModelAwayError, "model.unavailable"),
        (Fail(400, message=f"temperature is wrong for {KEY}"), ModelInputError, "model.invalid"),
        (Fail(400, message="the maximum context length is 8192 tokens, not 10000 tokens",
              code="context_length_exceeded"), ModelInputError, "model.context_length"),
    ],
)  # fmt: skip
async def test_a_refusal_becomes_an_error_without_secrets(
    server: LLMockServer, fail: Fail, kind: type[ModelError], code: str
) -> None:
    server.state.scenarios.add(fail)
    model = built("openai", server.base_url())
    with pytest.raises(kind) as caught:
        await model.chat({"messages": USER})
    assert caught.value.code == code
    assert KEY not in caught.value.message
    assert "model 'm'" in caught.value.message
    if code == "model.rate_limit":
        assert isinstance(caught.value, ModelAwayError) and caught.value.retry_after_s == 7
    if code == "model.context_length":
        assert "8192" in caught.value.message and "10000" in caught.value.message
    await model.aclose()


async def test_a_call_is_tried_again(server: LLMockServer) -> None:
    server.state.scenarios.add(Fail(503, retry_after=0.01))
    model = built("openai", server.base_url(), max_retries="1")
    assert (await model.chat({"messages": USER}))["choices"]
    await model.aclose()


async def test_a_silent_stream_times_out(server: LLMockServer) -> None:
    server.state.scenarios.add(StreamFault("stall", after_chunks=1, stall_seconds=30))
    model = built("openai", server.base_url(), silence_timeout="200ms")
    with pytest.raises(ModelAwayError, match="in time") as caught:
        async for _ in model.stream({"messages": USER}):
            pass
    assert caught.value.code == "model.timeout"
    await model.aclose()


async def test_a_server_that_is_away_is_named() -> None:
    with socket.socket() as taken:
        # The port is bound, but does not listen.
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    model = built("openai", address)
    with pytest.raises(ModelAwayError, match=r"cannot be reached \(Connection refused\)"):
        await model.chat({"messages": USER})
    with pytest.raises(ModelAwayError, match="cannot be reached"):
        await model.check()
    await model.aclose()


async def test_an_unknown_host_is_named() -> None:
    model = built("openai", "http://nowhere.invalid/v1")
    with pytest.raises(ModelAwayError, match="the name of its host is not known"):
        await model.chat({"messages": USER})
    await model.aclose()


async def test_a_check_asks_for_the_listing(server: LLMockServer) -> None:
    model = built("openai", server.base_url())
    await model.check()
    server.state.scenarios.add(Fail(401))
    with pytest.raises(ModelError) as caught:
        await model.check()
    assert caught.value.code == "model.auth"
    await model.aclose()


async def test_tools_pass_through(server: LLMockServer) -> None:
    server.state.scenarios.add(Reply(text="done"))
    model = built("openai", server.base_url())
    answer = await model.chat({"messages": USER})
    assert answer["choices"][0]["message"]["content"] == "done"
    await model.aclose()


@pytest.mark.parametrize(
    ("params", "words"),
    [({"openai_temprature": "1"}, "did you mean 'openai_temperature'"),
     ({"silence_timeout": "soon"}, "not a duration"),
     ({"max_retries": "-1"}, "whole number"),
     ({"endpoint": "localhost"}, "no address"),
     ({"tls_root_certificate": "/nowhere.pem"}, "cannot be read")],
)  # fmt: skip
def test_a_wrong_param_is_named(params: dict[str, str], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        built("openai", **{"endpoint": "http://localhost/v1", **params})
    assert caught.value.code == "model.invalid"


@pytest.mark.parametrize("is_deep", [True, False])
async def test_what_is_no_json_for_others_is_refused_before_it_is_sent(is_deep: bool) -> None:
    schema: Any = {}
    for _ in range(300):
        schema = {"items": schema}
    more = {"tools": [schema]} if is_deep else {"seed": 2**70}
    model = built("openai", "http://127.0.0.1:9")
    with pytest.raises(ModelInputError, match="the request cannot be sent as JSON"):
        await model.chat({"messages": USER, **more})
    with pytest.raises(ModelInputError, match="the request cannot be sent as JSON"):
        hosting.call_of({"messages": USER, **more}, is_stream=False)
    await model.aclose()


@pytest.mark.parametrize(
    "end", [b"data: [DONE]\n\n", b"data:[DONE] \r\n\r\n", b"data: [DONE]", b""]
)
async def test_a_stream_may_end_in_every_way_once_it_is_complete(end: bytes) -> None:
    async with scripted() as provider:
        provider.streams = [[chunk("a"), b": ping\n\n", chunk(finish="stop"), end]]
        model = built("openai", provider.url)
        told = [each async for each in model.stream({"messages": USER})]
        assert told[0]["choices"][0]["delta"]["content"] == "a" and len(told) == 2
        await model.aclose()
