import asyncio
from typing import Any

import pytest

from caraway_core.concurrency import tasks
from caraway_core.errors import ExecutorLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import AnswerPage
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.peers import Peer
from tests.kit.deadlines import eventually

ONE = ExecutorId("e1")


class Methods:
    """The methods of an actor, which remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        methods = self

        class Method:
            def remote(self, *arguments: object) -> None:
                methods.calls.append((name, arguments))

        return Method()


def peer(actor: Methods) -> Peer:
    return Peer(ONE, actor, asyncio.get_running_loop().create_future())


@pytest.mark.parametrize("is_last", [False, True], ids=["open", "at its end"])
async def test_an_answer_that_comes_after_its_caller_left_is_closed(is_last: bool) -> None:
    actor, answers = Methods(), Answers(lambda _peer, exc: pytest.fail(str(exc)))
    coming: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    waiting = tasks.begin(answers.over_channel(peer(actor), "q/1", coming))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert actor.calls == [("cancel", ("q/1",))]
    assert not coming.cancelled()
    coming.set_result(wire.pack(AnswerPage("cursor", (), is_last)))

    async def is_seen_off() -> bool:
        return not answers._abandoned._tasks

    await eventually(is_seen_off, "the answer is dealt with")
    assert actor.calls[1:] == ([] if is_last else [("close", ("cursor",))])


async def test_an_answer_of_an_executor_that_is_lost_is_not_awaited() -> None:
    actor, answers = Methods(), Answers(lambda _peer, exc: pytest.fail(str(exc)))
    one = peer(actor)
    coming: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    waiting = tasks.begin(answers.work(one, "q/1", coming))
    await asyncio.sleep(0)
    one.let_go()
    with pytest.raises(ExecutorLostError, match="'e1'"):
        await waiting
    assert actor.calls == []
