"""Answers of providers that no client expects: of another kind, without end, cut, or too large."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from caraway_ai.protocols import ChatModel
from caraway_ai.providers import connections
from caraway_core.errors import ModelAwayError, ModelError
from tests.kit.listening import listening
from tests.kit.models import KEY, USER, built
from tests.kit.scripted_provider import completion

PROVIDERS = ("openai", "anthropic")


@asynccontextmanager
async def answering(
    response: Response, provider: str = "openai", **params: str
) -> AsyncIterator[ChatModel]:
    async def answer(request: Request) -> Response:
        return response

    async with listening(Starlette(routes=[Route("/{rest:path}", answer, methods=["POST"])])) as at:
        model = built(provider, f"{at}/v1", **params)
        yield model
        await model.aclose()


async def end(model: ChatModel) -> None:
    async with aclosing(model.stream({"messages": USER})) as chunks:
        async for _ in chunks:
            pass


async def test_an_error_in_place_of_a_stream_is_told() -> None:
    error = {"error": {"message": f"busy {KEY}", "type": "overloaded_error"}}
    async with answering(JSONResponse(error)) as model:
        with pytest.raises(ModelAwayError, match="overloaded") as caught:
            await end(model)
        assert KEY not in caught.value.message


async def test_a_whole_answer_in_place_of_a_stream_is_damaged() -> None:
    async with answering(JSONResponse(completion())) as model:
        with pytest.raises(ModelError, match="not a stream of events"):
            await end(model)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_without_end_is_given_up(provider: str) -> None:
    async def spaces() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0)

    response = StreamingResponse(spaces(), media_type="application/json")
    async with answering(response, provider, request_timeout="300ms") as model:
        with pytest.raises(ModelAwayError, match="in time") as caught:
            await model.chat({"messages": USER})
        assert caught.value.code == "model.timeout"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_is_too_large_is_left(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 1000)
    async with answering(JSONResponse(completion("x" * 2000)), provider) as model:
        with pytest.raises(ModelError):
            await model.chat({"messages": USER})


async def test_an_answer_that_is_cut_is_said_to_be() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id"')
        writer.close()

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = built("openai", f"http://127.0.0.1:{port}/v1")
        with pytest.raises(ModelAwayError, match="was lost before the answer was complete"):
            await model.chat({"messages": USER})
        await model.aclose()


async def test_a_block_that_is_no_object_is_damaged() -> None:
    answer = {"content": ["text"], "stop_reason": "end_turn"}
    async with answering(JSONResponse(answer), "anthropic") as model:
        with pytest.raises(ModelError, match="damaged"):
            await model.chat({"messages": USER})
