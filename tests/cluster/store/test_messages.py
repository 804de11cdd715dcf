"""Bodies and responses of the store: any blocks, clients that stop or go away, heads."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_cluster.store import messages
from caraway_cluster.store.messages import Body, HttpError, Reply


def receiving(*found: dict[str, Any]) -> Callable[[], Any]:
    """Give these messages, then nothing."""
    waiting = list(found)

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


def blocks_of(*blocks: bytes) -> list[dict[str, Any]]:
    last = len(blocks) - 1
    return [
        {"type": "http.request", "body": block, "more_body": number < last}
        for number, block in enumerate(blocks)
    ]


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=8), st.integers(1, 12))
def test_blocks_are_read_whole_and_in_order(blocks: Sequence[bytes], min_bytes: int) -> None:
    async def read() -> None:
        body = Body(receiving(*blocks_of(*blocks)))
        found: list[bytes] = []
        while part := await body.read_blocks(min_bytes):
            assert sum(map(len, part)) >= min_bytes or body.is_read
            assert all(part)
            found += part
        assert b"".join(found) == b"".join(blocks) and body.is_read
        assert await body.read_blocks(1) == []

    asyncio.run(read())


async def test_a_client_that_stops_sending_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PATIENCE_S", 0.01)
    body = Body(receiving({"type": "http.request", "body": b"ab", "more_body": True}))
    assert await body.read_blocks(1) == [b"ab"]
    with pytest.raises(HttpError, match="timed out") as caught:
        await body.read_blocks(1)
    assert caught.value.status == 408


async def test_a_client_that_goes_away_is_no_end_of_the_body() -> None:
    body = Body(receiving(*blocks_of(b"ab", b"")[:1], {"type": "http.disconnect"}))
    with pytest.raises(ConnectionError, match="disconnected"):
        await body.read_blocks(100)
    assert not body.is_read


class Sent:
    def __init__(self, stalls: bool = False) -> None:
        self.messages: list[Any] = []
        self._stalls = stalls

    async def __call__(self, message: Any) -> None:
        if self._stalls and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages)


@pytest.mark.parametrize("is_head", [True, False])
async def test_a_head_has_the_headers_of_the_content_and_no_content(is_head: bool) -> None:
    sent = Sent()
    reply = Reply(sent, is_head)
    await reply.send_text(404, "no chunk 'ä'", [(b"x-a", b"1")])
    start = sent.messages[0]
    assert reply.status == start["status"] == 404
    headers = dict(start["headers"])
    assert headers[b"content-length"] == str(len("no chunk 'ä'".encode())).encode()
    assert headers[b"content-type"] == b"text/plain; charset=utf-8" and headers[b"x-a"] == b"1"
    assert sent.body == (b"" if is_head else "no chunk 'ä'".encode())
    assert not sent.messages[-1].get("more_body")


@pytest.mark.parametrize(("status", "has_length"), [(204, False), (201, True), (200, True)])
async def test_a_response_without_content_has_a_length_where_one_may_be(
    status: int, has_length: bool
) -> None:
    sent = Sent()
    await Reply(sent, False).send_empty(status)
    assert bool(sent.messages[0]["headers"]) is has_length and sent.body == b""


async def test_a_client_that_stops_reading_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PATIENCE_S", 0.01)
    reply = Reply(Sent(stalls=True), False)
    await reply.start_response(200, 10)
    with pytest.raises(ConnectionError, match="stopped reading"):
        await reply.send_block(b"x" * 10, is_last=True)
