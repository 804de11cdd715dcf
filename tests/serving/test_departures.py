"""Work of a request ends when its client leaves, and at no other time."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from caraway_serving import streaming
from caraway_serving.departures import DEPARTURE, Departure
from caraway_serving.listeners import HttpServer

POST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
LARGE = b"x" * 1_000_000


@dataclass
class Connection:
    told: list[str]

    def resume_reading(self) -> None:
        self.told.append("listens")


def departure(listened: list[str] | None = None) -> Departure:
    return Departure(Connection([] if listened is None else listened))


async def forever() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_work_whose_client_stays_is_done_in_the_same_task() -> None:
    listened: list[str] = []
    client = departure(listened)

    async def work() -> object:
        await asyncio.sleep(0)
        return asyncio.current_task()

    assert await client.cut_short(work()) is asyncio.current_task()
    assert listened == ["listens"]
    client.happen()
    await asyncio.sleep(0)
    current = asyncio.current_task()
    assert current is not None and not current.cancelling()


async def test_work_ends_when_the_client_leaves() -> None:
    client, ended = departure(), asyncio.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def request() -> int:
        with pytest.raises(ClientDisconnect):
            await client.cut_short(work())
        assert ended.is_set()
        task = asyncio.current_task()
        assert task is not None
        # The task goes on to write a response, which must not be cancelled.
        await asyncio.sleep(0)
        return task.cancelling()

    serving = asyncio.create_task(request())
    await asyncio.sleep(0)
    client.happen()
    assert await serving == 0


async def test_work_for_a_client_that_has_left_does_not_begin() -> None:
    client, begun = departure(), []
    client.happen()

    async def work() -> None:
        begun.append(True)

    with pytest.raises(ClientDisconnect):
        await client.cut_short(work())
    assert not begun


async def test_cancelled_by_its_server_a_request_is_cancelled() -> None:
    """Also if the client leaves at the same moment."""
    for both in (False, True):
        client = departure()
        serving = asyncio.create_task(client.cut_short(forever()))
        await asyncio.sleep(0)
        serving.cancel()
        if both:
            client.happen()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert serving.cancelled()


@pytest.mark.parametrize("ends", ["returns", "fails"])
async def test_work_that_ends_in_spite_of_it_leaves_no_cancellation(ends: str) -> None:
    client = departure()

    async def stubborn() -> str:
        try:
            return await forever()
        except asyncio.CancelledError:
            if ends == "fails":
                raise ValueError("it failed") from None
            return "done"

    async def request() -> object:
        try:
            found: object = await client.cut_short(stubborn())
        except ValueError as exc:
            found = str(exc)
        await asyncio.sleep(0)
        return found

    serving = asyncio.create_task(request())
    await asyncio.sleep(0)
    client.happen()
    assert await serving == ("it failed" if ends == "fails" else "done")


async def test_a_time_limit_inside_the_work_is_its_own() -> None:
    client = departure()

    async def limited() -> str:
        try:
            async with asyncio.timeout(0):
                return await forever()
        except TimeoutError:
            return "late"

    assert await client.cut_short(limited()) == "late"


@asynccontextmanager
async def served(
    app: Callable[[Scope, Receive, Send], Awaitable[None]],
) -> AsyncIterator[int]:
    with socket.socket(proto=socket.IPPROTO_TCP) as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        server = HttpServer(app, most_connections=10, head_timeout_s=60.0)
        serving = asyncio.create_task(server.serve(sockets=[held]))
        try:
            yield held.getsockname()[1]
        finally:
            server.stop(now=True)
            await serving


@pytest.mark.parametrize("body", [b"", b"x", LARGE], ids=["none", "small", "large"])
@pytest.mark.parametrize("is_reset", [False, True])
async def test_closed_connection_ends_the_work_of_its_request(body: bytes, is_reset: bool) -> None:
    """A large body stops the server from reading, until something asks for more."""
    begun, gone = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        assert await request.body() == body
        assert DEPARTURE in scope
        begun.set()
        try:
            await streaming.unless_gone(request, forever())
        except ClientDisconnect:
            gone.set()

    async with asyncio.timeout(60), served(app) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST % (len(body), body))
        await begun.wait()
        writer.transport.abort() if is_reset else writer.close()
        await gone.wait()


async def test_requests_sent_ahead_are_told_too() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()
    answered: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answered.append(scope["path"])
        if scope["path"] == "/first":
            await PlainTextResponse("first")(scope, receive, send)
            return
        begun.set()
        try:
            await streaming.unless_gone(request, forever())
        except ClientDisconnect:
            gone.set()

    async with asyncio.timeout(60), served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ahead = (b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % path for path in (b"first", b"b", b"c"))
        writer.write(b"".join(ahead))
        assert (await reader.readuntil(b"first")).startswith(b"HTTP/1.1 200")
        await begun.wait()
        writer.transport.abort()
        await gone.wait()
        assert answered == ["/first", "/b"]
