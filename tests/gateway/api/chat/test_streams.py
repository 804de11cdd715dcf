"""Streams: order, faults, pauses, and clients that leave."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from caraway_gateway.api.chat import streams
from tests.kit.deadlines import eventually
from tests.kit.models import USER, manifest, served
from tests.kit.scripted_provider import Script, chunk, scripted

BODY = {"model": "chat", "messages": USER, "stream": True}


async def test_a_stream_arrives_as_it_is_made(tmp_path: Path) -> None:
    more = asyncio.Event()
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[chunk("one"), more, chunk("two", "stop"), b"data: [DONE]\n\n"]]
        create: Any = caraway.client.chat.completions.create
        stream = await create(model="chat", messages=USER, stream=True)
        got = [await anext(stream)]
        more.set()
        got += [part async for part in stream]
        assert [part.choices[0].delta.content for part in got] == ["one", "two"]
        assert {part.model for part in got} == {"chat"}


async def test_several_choices_are_all_waited_for(tmp_path: Path) -> None:
    first = chunk("a", "stop")
    second = chunk("b", "stop")
    second["choices"][0]["index"] = 1
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[first, second], [first, b"data: [DONE]\n\n"]]
        create: Any = caraway.client.chat.completions.create
        assert [c async for c in await create(model="chat", messages=USER, stream=True, n=2)]
        with pytest.raises(openai.APIError, match="complete"):
            async for _ in await create(model="chat", messages=USER, stream=True, n=2):
                pass


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([chunk("short")], "before the answer was complete"),
        ([chunk("short"), b"data: [DONE]\n\n"], "before the answer was complete"),
        ([chunk("short"), b"data: {\n\n"], "not JSON"),
        ([chunk("short"), b"data: [1]\n\n"], "no choices"),
        ([chunk("short"), {"error": {"message": "secret words", "type": "overloaded_error"}}],
         "overloaded"),
        ([chunk("short"), b'event: error\ndata: {"message": "x"}\n\n'], "middle of the answer"),
    ],
)  # fmt: skip
async def test_a_broken_stream_ends_with_an_error(
    tmp_path: Path, script: Script, words: str
) -> None:
    hold = asyncio.Event()
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[script[0], hold, *script[1:]]]
        create: Any = caraway.client.chat.completions.create
        stream = await create(model="chat", messages=USER, stream=True)
        assert (await anext(stream)).choices[0].delta.content == "short"
        hold.set()
        with pytest.raises(openai.APIError, match=words) as caught:
            async for _ in stream:
                pass
        assert "secret" not in str(caught.value)


async def test_an_error_frame_has_the_form_of_both_wires(tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[chunk("short"), hold]]
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            async with client.stream("POST", "/v1/chat/completions", json=BODY) as answer:
                lines = answer.aiter_lines()
                assert "short" in await anext(lines)
                hold.set()
                rest = [line async for line in lines if line]
        assert rest[0] == "event: error"
        assert '"type":"error"' in rest[1] and '"code":"model.failed"' in rest[1]
        assert "[DONE]" not in "".join(rest)


async def test_a_silent_stream_is_kept_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_S", 0.01)
    monkeypatch.setattr(streams, "HOLD_S", 0.01)
    hold = asyncio.Event()
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[hold, chunk("late", "stop")]]
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            async with client.stream("POST", "/v1/chat/completions", json=BODY) as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == ": keep-alive"
                hold.set()
                rest = [line async for line in lines if line and line[0] != ":"]
        assert "late" in rest[0]
        assert rest[-1] == "data: [DONE]"


async def test_a_client_that_leaves_stops_the_provider(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[chunk("one"), asyncio.Event()]]
        loaded = caraway.models.states["chat"].loaded
        assert loaded is not None
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            async with client.stream("POST", "/v1/chat/completions", json=BODY) as answer:
                assert "one" in await anext(answer.aiter_lines())
                assert loaded.limits.active == 1
        await provider.left.wait()

        async def is_idle() -> bool:
            return loaded.limits.active == 0

        await eventually(is_idle, "the place was given back")


async def test_a_client_that_leaves_before_the_first_token_stops_the_provider(
    tmp_path: Path,
) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[b": wait\n\n", asyncio.Event()]]
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            sending = asyncio.ensure_future(client.post("/v1/chat/completions", json=BODY))

            async def is_asked() -> bool:
                return bool(provider.requests)

            await eventually(is_asked, "the provider was asked")
            sending.cancel()
            await asyncio.wait((sending,))
            await provider.left.wait()
