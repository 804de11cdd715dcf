import asyncio

import pytest

from caraway_core.errors import OverloadedError
from caraway_core.ids import PrincipalId
from caraway_scheduler.queries.admission import Admission
from tests.kit.turns import turn

ANN, BEN = PrincipalId("ann"), PrincipalId("ben")


async def test_no_limit_admits_every_statement() -> None:
    admission = Admission(None, 0, 1)
    for _ in range(100):
        await admission.enter()
    assert admission.running == 100


async def test_waiting_is_first_come_first_served() -> None:
    admission = Admission(1, 10, 5)
    await admission.enter()
    order: list[int] = []

    async def visit(number: int) -> None:
        await admission.enter()
        order.append(number)
        admission.leave()

    visits = [asyncio.create_task(visit(number)) for number in range(4)]
    while admission.queued < 4:
        await turn()
    assert order == []
    admission.leave()
    await asyncio.gather(*visits)
    assert order == [0, 1, 2, 3]
    assert admission.running == 0


async def test_full_queue_is_refused_with_retry_after() -> None:
    admission = Admission(1, 1, 5)
    await admission.enter()
    waiting = asyncio.create_task(admission.enter())
    while not admission.queued:
        await turn()
    with pytest.raises(OverloadedError) as caught:
        await admission.enter()
    assert caught.value.retry_after_s == 1
    admission.leave()
    await waiting
    assert admission.running == 1


async def test_keys_take_turns_and_one_fills_half_of_the_queue() -> None:
    admission = Admission(1, 6, 60)
    await admission.enter(ANN)
    order: list[str] = []

    async def visit(principal: PrincipalId) -> None:
        await admission.enter(principal)
        order.append(principal)
        admission.leave(principal)

    visits = [asyncio.create_task(visit(ANN)) for _ in range(3)]
    while admission.queued < 3:
        await turn()
    with pytest.raises(OverloadedError, match="3 of these are of this key"):
        await admission.enter(ANN)
    visits += [asyncio.create_task(visit(BEN)) for _ in range(2)]
    while admission.queued < 5:
        await turn()
    assert (len(admission.quota), admission.quota.refusals) == (5, 1)
    admission.leave(ANN)
    await asyncio.gather(*visits)
    assert order == ["ann", "ben", "ann", "ben", "ann"]
    assert (admission.running, admission.queued) == (0, 0)


async def test_the_key_with_fewest_running_statements_is_next() -> None:
    admission = Admission(2, 6, 60)
    await admission.enter(ANN)
    await admission.enter(ANN)
    anns = asyncio.create_task(admission.enter(ANN))
    while admission.queued < 1:
        await turn()
    bens = asyncio.create_task(admission.enter(BEN))
    while admission.queued < 2:
        await turn()
    admission.leave(ANN)
    await bens
    assert not anns.done()
    anns.cancel()
    await asyncio.wait([anns])
    admission.leave(BEN)
    admission.leave(ANN)
    assert (admission.running, admission.queued) == (0, 0)


async def test_wait_is_bounded() -> None:
    admission = Admission(1, 5, 0.01)
    await admission.enter()
    with pytest.raises(OverloadedError, match="no query finished within"):
        await admission.enter()
    assert admission.queued == 0
    admission.leave()
    assert admission.running == 0


async def test_cancelled_waiter_loses_no_slot() -> None:
    admission = Admission(1, 5, 5)
    await admission.enter()
    first = asyncio.create_task(admission.enter())
    while not admission.queued:
        await turn()
    # The slot is granted and the waiter is cancelled in the same iteration of the loop.
    admission.leave()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await admission.enter()
    assert admission.running == 1


async def test_more_slots_admit_waiting_statements() -> None:
    admission = Admission(1, 10, 5)
    await admission.enter()
    waiting = [asyncio.create_task(admission.enter()) for _ in range(3)]
    while admission.queued < 3:
        await turn()
    admission.bound(3)
    await asyncio.gather(*waiting[:2])
    assert (admission.running, admission.queued) == (3, 1)
    admission.bound(None)
    await waiting[2]
    assert (admission.running, admission.queued) == (4, 0)


async def test_fewer_slots_apply_once_running_statements_leave() -> None:
    admission = Admission(3, 10, 5)
    for _ in range(3):
        await admission.enter()
    admission.bound(1)
    waiting = asyncio.create_task(admission.enter())
    while not admission.queued:
        await turn()
    admission.leave()
    admission.leave()
    await turn()
    assert (admission.running, admission.queued) == (1, 1)
    admission.leave()
    await waiting
    assert (admission.running, admission.queued) == (1, 0)
