"""The HTTP client for MCP servers, against servers that send too much or lead elsewhere."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from caraway_ai.tools import mcp_http
from tests.kit.listening import listening

MOST = 1000


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "MOST_BYTES", MOST)


def serving(answer: Any) -> Starlette:
    return Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])


async def read(parts: Iterable[bytes], media_type: str) -> bytes:
    async def answer(request: Request) -> Response:
        async def sent() -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        return StreamingResponse(sent(), headers={"content-type": media_type})

    async with listening(serving(answer)) as address, mcp_http.http_client({}) as client:
        return (await client.post(f"{address}/", json={})).content


@pytest.mark.parametrize("media_type", ["application/json", "text/plain", "TEXT/EVENTS", ""])
async def test_an_answer_may_have_so_many_bytes_and_no_more(media_type: str) -> None:
    whole = [b"x" * 500, b"", b"y" * 500]
    assert await read(whole, media_type) == b"".join(whole)
    with pytest.raises(httpx2.RemoteProtocolError, match="the answer has more than 1000 bytes"):
        await read([*whole, b"z"], media_type)


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_a_stream_may_have_any_number_of_events(end: bytes) -> None:
    events = [b"data: " + b"x" * 900 + end] * 20
    assert await read(events, "text/event-stream") == b"".join(events)
    cut = b"".join(events)
    for size in (907, 53):
        parts = [cut[start : start + size] for start in range(0, len(cut), size)]
        assert await read(parts, "text/event-stream; charset=utf-8") == cut


@pytest.mark.parametrize(
    "parts",
    [
        [b"data: " + b"x" * 1000],
        [b"data: ok\n\ndata: ", *[b"x" * 100] * 11],
        [b"data: x\n"] * 200,
        [b"\n", b"x" * 1001],
    ],
)
async def test_one_event_may_not_have_more_bytes(parts: list[bytes]) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="an event of the answer has more than"):
        await read(parts, "text/event-stream")


async def test_nothing_is_sent_compressed() -> None:
    seen: list[Mapping[str, str]] = []

    async def answer(request: Request) -> Response:
        seen.append(request.headers)
        return JSONResponse({})

    async with listening(serving(answer)) as address:
        async with mcp_http.http_client({"x-key": "k"}) as client:
            await client.post(f"{address}/", json={})
    assert (seen[0]["accept-encoding"], seen[0]["x-key"]) == ("identity", "k")


async def test_a_redirect_to_another_server_does_not_get_the_headers() -> None:
    seen: list[Mapping[str, str]] = []

    async def elsewhere(request: Request) -> Response:
        seen.append(request.headers)
        return JSONResponse({})

    async with listening(serving(elsewhere)) as other:

        async def redirects(request: Request) -> Response:
            return RedirectResponse(f"{other}/")

        async with listening(serving(redirects)) as address:
            async with mcp_http.http_client({"authorization": "Bearer s3cret"}) as client:
                answer = await client.post(f"{address}/", json={})
    assert answer.status_code == 307
    assert seen == []
