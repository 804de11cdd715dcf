"""Calls over a channel, between a scheduler's end and that of an executor."""

import asyncio
import contextlib
import logging
import pickle
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.channels import channel
from caraway_core.channels.handshake import NoProofError
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError, ExecutorLostError, InvalidQueryError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.protocols.wire import PackedPage, SentPage
from caraway_core.settings import Address
from caraway_executor.endpoints import channel_server
from caraway_executor.endpoints.channel_server import ChannelServer
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls

ONE, TOKEN = ExecutorId("one"), "token"
SMALL = pa.record_batch({"n": [1, 2, 3]})
LARGE = pa.record_batch({"n": pa.array(range(200_000), pa.int64())})
Answer = Callable[[bytes], SentPage | Awaitable[SentPage]]


async def no_call(method: str, _arguments: bytes) -> None:
    raise AssertionError(f"{method} is called")


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[ChannelServer]:
    server = ChannelServer("127.0.0.1", TOKEN, ONE, answer, no_call)
    serving = tasks.begin(server.serve())
    try:
        yield server
    finally:
        serving.cancel()
        await asyncio.wait([serving])


@asynccontextmanager
async def connected(answer: Answer, token: str = TOKEN) -> AsyncIterator[ChannelCalls]:
    async with listening(answer) as server:
        direct = ChannelCalls(ONE, server.place)
        await direct.connect(token)
        try:
            yield direct
        finally:
            direct.close("the test is over")


def page(*batches: pa.RecordBatch) -> AnswerPage:
    return AnswerPage("", batches, True, batches[0].schema)


def echo(arguments: bytes) -> SentPage:
    return wire.pack(AnswerPage(arguments.decode(), (), True))


async def read(direct: ChannelCalls, arguments: bytes = b"") -> AnswerPage:
    return wire.unpack(await direct.open(arguments))


async def test_every_call_has_its_own_answer_whichever_is_first() -> None:
    gates = {b"1": asyncio.Event(), b"2": asyncio.Event()}

    def answer(arguments: bytes) -> SentPage | Awaitable[SentPage]:
        if arguments not in gates:
            return echo(arguments)

        async def later() -> SentPage:
            await gates[arguments].wait()
            return echo(arguments)

        return later()

    async with connected(answer) as direct:
        calls = [direct.open(each) for each in (b"1", b"2", b"3")]
        assert wire.unpack(await calls[2]).cursor == "3"
        gates[b"2"].set()
        assert wire.unpack(await calls[1]).cursor == "2"
        assert not calls[0].done()
        gates[b"1"].set()
        assert wire.unpack(await calls[0]).cursor == "1"


async def test_rows_arrive_as_they_were_sent_however_many() -> None:
    pages = {b"small": page(SMALL), b"large": page(LARGE, LARGE)}
    async with connected(lambda each: wire.pack(pages[each])) as direct:
        names = [b"large", b"small", b"large"]
        found = await asyncio.gather(*(read(direct, name) for name in names))
        assert found == [pages[name] for name in names]
        sent = await direct.open(b"large")
        assert isinstance(sent, PackedPage) and isinstance(sent.rows, pa.Buffer)


async def test_an_error_is_the_answer_of_its_call_alone() -> None:
    def answer(arguments: bytes) -> SentPage | Awaitable[SentPage]:
        if arguments == b"wrong":
            raise InvalidQueryError("table 'x' not found")

        async def later() -> SentPage:
            if arguments == b"broken":
                raise ZeroDivisionError("a secret path\nof several lines")
            raise InvalidQueryError("it failed later")

        return echo(arguments) if arguments == b"well" else later()

    async with connected(answer) as direct:
        calls = [read(direct, each) for each in (b"wrong", b"later", b"broken", b"well")]
        wrong, later, broken, well = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(wrong, InvalidQueryError) and wrong.message == "table 'x' not found"
        assert isinstance(later, InvalidQueryError) and later.message == "it failed later"
        assert isinstance(broken, ExecutionError)
        assert broken.message == "executor 'one': ZeroDivisionError: a secret path"
        assert isinstance(well, AnswerPage)


async def test_calls_fail_with_their_channel_and_are_for_others_then() -> None:
    async with listening(lambda _: asyncio.Future()) as server:
        direct = ChannelCalls(ONE, server.place)
        await direct.connect(TOKEN)
        first, second = direct.open(b""), direct.open(b"")
        direct.close("it no longer answers")
        for each in (first, second):
            with pytest.raises(ExecutorLostError, match="'one' is lost: it no longer answers"):
                await each
        assert not direct.is_open
        again = ChannelCalls(ONE, server.place)
        await again.connect(TOKEN)
        call = again.open(b"")
    with pytest.raises(ExecutorLostError, match="its connection was closed"):
        await call
    assert not again.is_open


async def test_a_caller_that_goes_away_does_not_end_its_answer() -> None:
    gate = asyncio.Event()

    async def later() -> SentPage:
        await gate.wait()
        return echo(b"cursor")

    async with connected(lambda _: later()) as direct:
        answer = direct.open(b"")
        caller = asyncio.ensure_future(asyncio.shield(answer))
        caller.cancel()
        await asyncio.wait([caller])
        gate.set()
        assert wire.unpack(await answer).cursor == "cursor"


async def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    gate = asyncio.Event()

    async def later() -> SentPage:
        await gate.wait()
        return echo(b"cursor")

    async with connected(lambda each: later() if each else echo(b"well")) as direct:
        dropped, kept = direct.open(b"later"), direct.open(b"later")
        dropped.cancel()
        gate.set()
        assert wire.unpack(await kept).cursor == "cursor"
        again = direct.open(b"later")
        again.cancel()
        direct.close("it is gone")
        assert again.cancelled()


async def test_the_work_of_calls_ends_with_their_channel() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def later() -> SentPage:
        begun.set()
        try:
            return await asyncio.Future[SentPage]()
        finally:
            ended.set()

    async with listening(lambda _: later()) as server:
        direct = ChannelCalls(ONE, server.place)
        await direct.connect(TOKEN)
        call = direct.open(b"")
        await begun.wait()
        direct.close("the scheduler ends")
        async with asyncio.timeout(30):
            await ended.wait()
        with pytest.raises(ExecutorLostError):
            await call


async def test_a_process_without_room_for_connections_accepts_later_ones(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(channel_server, "_DELAYS", Delays(0.01, 0.01))
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(24, "Too many open files")]

    async def sock_accept(listener: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", sock_accept)
    async with connected(echo) as direct:
        assert (await read(direct, b"well")).cursor == "well"
    assert "cannot accept a channel" in caplog.text


async def test_whoever_lacks_the_token_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[bytes] = []

    def answer(arguments: bytes) -> SentPage:
        calls.append(arguments)
        return echo(arguments)

    async with listening(answer) as server:
        with pytest.raises(NoProofError), caplog.at_level(logging.WARNING):
            await ChannelCalls(ONE, server.place).connect("another token")
        raw = socket.create_connection((server.place.host, server.place.port))
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        bomb = pickle.dumps((1, b"x"))
        framed = channel._HEADER.pack(len(bomb), 0) + bomb
        await loop.sock_sendall(raw, framed.ljust(200, b"\0"))
        with contextlib.suppress(ConnectionResetError):
            while await loop.sock_recv(raw, 100):
                pass
        raw.close()
        # The others are served all the same.
        direct = ChannelCalls(ONE, server.place)
        await direct.connect(TOKEN)
        assert (await read(direct, b"well")).cursor == "well"
        direct.close("")
    assert calls == [b"well"]
    assert "connection refused" in caplog.text


async def test_where_nobody_listens_there_is_no_channel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoProofError, match=f"cannot connect to 127.0.0.1:{port}"):
        await ChannelCalls(ONE, Address("127.0.0.1", port)).connect(TOKEN)
