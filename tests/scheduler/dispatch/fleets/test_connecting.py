"""Peers get channels next to their heartbeats, and new ones where those were closed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caraway_core.concurrency import tasks
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.protocols.wire import SentPage
from caraway_core.settings import Address
from caraway_executor.endpoints.channel_server import ChannelServer
from caraway_scheduler.dispatch.fleets.connecting import Connecting
from caraway_scheduler.dispatch.fleets.peers import Peer

ONE, TOKEN = ExecutorId("one"), "token"
NOBODY = Address("127.0.0.1", 1)


def answer(arguments: bytes) -> SentPage:
    return wire.pack(AnswerPage(arguments.decode(), (), True))


async def no_call(method: str, _arguments: bytes) -> None:
    raise AssertionError(f"{method} is called")


@asynccontextmanager
async def servers(count: int = 1) -> AsyncIterator[list[ChannelServer]]:
    made = [ChannelServer("127.0.0.1", TOKEN, ONE, answer, no_call) for _ in range(count)]
    serving = [tasks.begin(each.serve()) for each in made]
    try:
        yield made
    finally:
        for each in serving:
            each.cancel()
        await asyncio.wait(serving)


def peer() -> Peer:
    return Peer(ONE, None, asyncio.get_running_loop().create_future())


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def until_done(connecting: Connecting) -> None:
    async with asyncio.timeout(30):
        while connecting._tasks:
            await asyncio.wait(connecting._tasks._tasks)


async def test_a_heartbeat_gives_a_peer_its_channel() -> None:
    async with servers() as (here,):
        connecting, one = Connecting(TOKEN), peer()
        connecting.look(one, None)
        assert not connecting._tasks
        connecting.look(one, here.place)
        connecting.look(one, here.place)
        assert len(connecting._tasks) == 1
        await until_done(connecting)
        assert one.direct is not None and one.direct.is_open
        assert wire.unpack(await one.direct.open(b"x")).cursor == "x"
        connecting.look(one, here.place)
        assert not connecting._tasks
        one.let_go()
        assert one.direct is None


async def test_a_closed_channel_and_another_place_are_connected_again() -> None:
    async with servers(2) as (here, two):
        connecting, one = Connecting(TOKEN), peer()
        connecting.look(one, here.place)
        await until_done(connecting)
        first = one.direct
        assert first is not None
        first.close("lost")
        connecting.look(one, here.place)
        await until_done(connecting)
        second = one.direct
        assert second is not None and second is not first and second.is_open
        connecting.look(one, two.place)
        await until_done(connecting)
        assert one.direct is not None and one.direct.place == two.place
        assert not second.is_open
        one.let_go()


async def test_what_cannot_be_reached_is_told_once_and_tried_more_and_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with servers() as (here,):
        clock = Clock()
        connecting, one = Connecting(TOKEN, clock), peer()
        tried_s = []
        with caplog.at_level(logging.WARNING):
            for second in range(40):
                clock.now_s = second
                connecting.look(one, NOBODY)
                if connecting._tasks:
                    tried_s.append(second)
                await until_done(connecting)
        assert tried_s[:2] == [0, 2] and 4 <= len(tried_s) <= 6
        assert caplog.text.count("no channel to an executor, so calls go through Ray") == 1
        assert one.direct is None
        # Another place is another matter.
        connecting.look(one, here.place)
        await until_done(connecting)
        assert one.direct is not None and one.direct.is_open
        one.let_go()


async def test_one_that_is_lost_meanwhile_keeps_no_channel() -> None:
    async with servers() as (here,):
        connecting, one = Connecting(TOKEN), peer()
        connecting.look(one, here.place)
        one.let_go()
        await until_done(connecting)
        assert one.direct is None
        connecting.look(one, here.place)
        await until_done(connecting)
        assert one.direct is not None
        one.let_go()
