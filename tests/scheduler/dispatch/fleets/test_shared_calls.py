"""Searches that begin together are one call of an executor."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from caraway_core.errors import CarawayError, InvalidQueryError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.index_orders import IndexOrder, WordOrder
from caraway_core.protocols import wire
from caraway_scheduler.dispatch.fleets.peers import Peer
from caraway_scheduler.dispatch.fleets.shared_calls import SharedCalls

ORDER = IndexOrder(TableName("docs"), WordOrder(("body",), "tea", "english", (1.0,)))
WRONG = b"wrong"


class Opening:
    """The `open` or `open_all` of an actor: answers with what it was called with."""

    def __init__(self, calls: list[Any], failure: Exception | None, *, takes_many: bool) -> None:
        self.calls = calls
        self.failure = failure
        self.takes_many = takes_many

    def remote(self, arguments: bytes) -> Any:
        given = wire.unpack_call(arguments) if self.takes_many else arguments
        self.calls.append(list(given) if self.takes_many else given)
        if self.failure is not None:
            raise self.failure
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        many = wire.pack_answers(list(map(_echo, given))) if self.takes_many else None
        answered.set_result(many or _echo(arguments))
        return answered


def _echo(arguments: bytes) -> bytes | CarawayError:
    return InvalidQueryError("no such column") if arguments == WRONG else b"page of " + arguments


class Actor:
    """Records the calls of both methods in their order."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self.open = Opening(self.calls, failure, takes_many=False)
        self.open_all = Opening(self.calls, failure, takes_many=True)


def peer(actor: Actor) -> Peer:
    return Peer(ExecutorId("e"), actor, asyncio.get_running_loop().create_future())


async def answers(waiting: Sequence[Any]) -> list[Any]:
    async def one(each: Any) -> Any:
        return await each

    return await asyncio.gather(*map(one, waiting), return_exceptions=True)


async def test_calls_of_one_turn_are_one_and_each_gets_its_answer() -> None:
    actor, shared = Actor(), SharedCalls()
    to = peer(actor)
    waiting = [shared.open(to, arguments, ORDER) for arguments in (b"a", WRONG, b"c")]
    assert actor.calls == []
    first, error, last = await answers(waiting)
    assert (first, last) == (b"page of a", b"page of c")
    assert isinstance(error, InvalidQueryError)
    assert actor.calls == [[b"a", WRONG, b"c"]]

    assert await answers([shared.open(to, b"d", ORDER)]) == [b"page of d"]
    assert actor.calls[1:] == [b"d"]


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDER, where="(id > 1)"),
        replace(ORDER, is_explained=True),
        replace(ORDER, is_explained=True, is_built=True),
        None,
    ],
)
async def test_work_of_another_length_is_a_call_of_its_own(other: IndexOrder | None) -> None:
    actor, shared = Actor(), SharedCalls()
    to = peer(actor)
    waiting = [shared.open(to, b"a", ORDER), shared.open(to, b"b", other)]
    assert await answers(waiting) == [b"page of a", b"page of b"]
    assert sorted(actor.calls) == [b"a", b"b"]


async def test_executors_share_no_call() -> None:
    one, two, shared = Actor(), Actor(), SharedCalls()
    waiting = [shared.open(peer(each), b"a", ORDER) for each in (one, two)]
    assert await answers(waiting) == [b"page of a", b"page of a"]
    assert one.calls == two.calls == [b"a"]


async def test_a_call_that_is_cancelled_takes_nothing_from_the_others() -> None:
    """What it may have opened can still be asked for, to be closed."""
    actor, shared = Actor(), SharedCalls()
    to = peer(actor)
    leaving, staying = shared.open(to, b"a", ORDER), shared.open(to, b"b", ORDER)
    task = asyncio.ensure_future(answers([leaving]))
    kept = asyncio.ensure_future(answers([staying]))
    await asyncio.sleep(0)
    task.cancel()
    assert await kept == [b"page of b"]
    assert await answers([leaving]) == [b"page of a"]
    assert actor.calls == [[b"a", b"b"]]


async def test_an_executor_that_cannot_be_called_fails_each_call() -> None:
    gone = Actor(ConnectionError("gone"))
    shared = SharedCalls()
    to = peer(gone)
    found = await answers([shared.open(to, b"a", ORDER), shared.open(to, b"b", ORDER)])
    assert [str(each) for each in found] == ["gone", "gone"]
