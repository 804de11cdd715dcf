"""One request that is passed on, without the application around it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.types import Message

from caraway_core.errors import UnavailableError
from caraway_management.api.forwarding import Forwarded, Target
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough.passing import Passthrough
from caraway_management.passthrough.runtimes import Runtime, Runtimes
from tests.kit.fake_runtime import Answering

SCOPE: dict[str, Any] = {"type": "http", "headers": [(b"content-type", b"application/json")]}
TARGET = Target(Runtime(1, "http://runtime", "key"), "POST", "/v1/queries", "", 5.0)


class Caller:
    """A caller that sends parts of a body, and leaves when it is asked to."""

    def __init__(self, *parts: bytes) -> None:
        self.leaves = asyncio.Event()
        self.received: list[Message] = []
        self.has_received = asyncio.Event()
        self._parts = list(parts)

    async def receive(self) -> Message:
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.received.append(message)
        self.has_received.set()

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.received)


async def nothing(status: int) -> None:
    """Do nothing."""


def passing(
    answer: Callable[[httpx.Request], Awaitable[httpx.Response]], target: Target = TARGET
) -> tuple[Forwarded, Passthrough]:
    passthrough = Passthrough(Runtimes(Answering(answer)))
    return Forwarded(passthrough, 7, target, nothing), passthrough


async def test_the_request_ends_when_the_caller_leaves() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        await request.aread()
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    caller = Caller(b"{}")
    forwarded, passthrough = passing(answer)
    running = asyncio.ensure_future(forwarded(SCOPE, caller.receive, caller.send))
    await began.wait()
    caller.leaves.set()
    await running
    assert ended.is_set()
    assert caller.received == []
    assert passthrough._requests == {}


async def test_parts_pass_as_they_come_and_the_stream_is_closed() -> None:
    goes_on = asyncio.Event()
    is_closed = asyncio.Event()

    class Stream(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"first"
            await goes_on.wait()
            yield b"second"

        async def aclose(self) -> None:
            is_closed.set()

    async def answer(request: httpx.Request) -> httpx.Response:
        assert [part async for part in request.stream] == [b"a", b"b"]  # type: ignore[union-attr]
        return httpx.Response(200, stream=Stream())

    caller = Caller(b"a", b"b")
    forwarded, _ = passing(answer)
    running = asyncio.ensure_future(forwarded(SCOPE, caller.receive, caller.send))
    while b"first" not in caller.body:
        caller.has_received.clear()
        await caller.has_received.wait()
    assert b"second" not in caller.body
    goes_on.set()
    await running
    assert caller.body == b"firstsecond"
    assert caller.received[-1]["more_body"] is False
    assert is_closed.is_set()


async def test_a_cut_response_has_no_end() -> None:
    class Cut(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"first"
            raise httpx.ReadError("cut")

    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Cut())

    caller = Caller(b"")
    forwarded, _ = passing(answer)
    await forwarded(SCOPE, caller.receive, caller.send)
    assert [each.get("more_body") for each in caller.received] == [None, True]


async def test_a_refused_key_is_no_answer_for_the_caller() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(401)

    caller = Caller(b"")
    forwarded, _ = passing(answer)
    with pytest.raises(UnavailableError, match="does not accept its key"):
        await forwarded(SCOPE, caller.receive, caller.send)
    assert caller.received == []


async def test_an_organization_takes_a_bounded_share() -> None:
    goes_on = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        await goes_on.wait()
        return httpx.Response(200)

    passthrough = Passthrough(Runtimes(Answering(answer)))

    async def ask(org_id: int) -> None:
        caller = Caller(b"")
        await Forwarded(passthrough, org_id, TARGET, nothing)(SCOPE, caller.receive, caller.send)

    first = [asyncio.ensure_future(ask(1)) for _ in range(100)]
    await asyncio.sleep(0)
    with pytest.raises(RefusedError, match="100 requests"):
        await ask(1)
    other = asyncio.ensure_future(ask(2))
    goes_on.set()
    await asyncio.gather(*first, other)
    assert passthrough._requests == {}


async def test_the_last_byte_ends_the_response() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        assert await request.aread() == b"{}"
        return httpx.Response(200, content=b"whole")

    caller = Caller(b"{}")
    forwarded, _ = passing(answer)
    await forwarded(SCOPE, caller.receive, caller.send)
    assert [each.get("more_body") for each in caller.received] == [None, False]
    assert caller.body == b"whole"


async def test_an_empty_response_ends() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204, headers={"content-length": "0"})

    caller = Caller(b"")
    forwarded, _ = passing(answer)
    await forwarded(SCOPE, caller.receive, caller.send)
    assert [each.get("more_body") for each in caller.received] == [None, False]


@pytest.mark.parametrize("parts", [(), (b"first",)])
async def test_a_caller_that_leaves_while_it_sends_ends_the_request(parts: tuple[bytes]) -> None:
    class Leaving(Caller):
        async def receive(self) -> Message:
            if self._parts:
                return {"type": "http.request", "body": self._parts.pop(0), "more_body": True}
            return {"type": "http.disconnect"}

    read: list[bytes] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        async for part in request.stream:  # type: ignore[union-attr]
            read.append(part)
        raise AssertionError("the body has no end")

    caller = Leaving(*parts)
    forwarded, passthrough = passing(answer)
    await asyncio.wait_for(forwarded(SCOPE, caller.receive, caller.send), 10)
    assert caller.received == []
    assert tuple(read) == parts
    assert passthrough._requests == {}
