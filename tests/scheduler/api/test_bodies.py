import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from caraway_scheduler.api import bodies
from caraway_scheduler.api.errors import RefusedError

Receive = Callable[[], Awaitable[dict[str, Any]]]


def request(receive: Receive, length: str | None = None) -> Request:
    headers = [(b"content-length", length.encode())] if length else []
    return Request({"type": "http", "headers": headers}, receive)


def parts(*messages: dict[str, Any]) -> Receive:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def test_parts_are_joined() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True},
                    {"type": "http.request", "body": b"1"})  # fmt: skip
    assert await bodies.read(request(receive), 100) == b"SELECT 1"


async def test_body_that_stops_arriving_is_408() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True})
    with pytest.raises(RefusedError) as caught:
        await bodies.read(request(receive), 100, chunk_timeout_s=0.02)
    assert caught.value.status == 408
    assert "after 7 bytes" in caught.value.message


async def test_body_that_breaks_off_is_no_body() -> None:
    receive = parts({"type": "http.request", "body": b"SELECT ", "more_body": True},
                    {"type": "http.disconnect"})  # fmt: skip
    with pytest.raises(ClientDisconnect):
        await bodies.read(request(receive), 100)


@pytest.mark.parametrize("length", [None, "200"])
async def test_body_over_the_limit_is_413(length: str | None) -> None:
    receive = parts({"type": "http.request", "body": b"x" * 150, "more_body": True})
    with pytest.raises(RefusedError) as caught:
        await bodies.read(request(receive, length), 100)
    assert caught.value.status == 413
