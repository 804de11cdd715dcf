import asyncio

import pytest

from caraway_serving.errors import RefusedRequestError
from caraway_serving.room import FREE_BYTES, BodyMemory, Lease

BIG = FREE_BYTES + 1


async def test_bodies_wait_until_others_have_left() -> None:
    room = BodyMemory(2 * BIG)
    first, second, third = Lease(room), Lease(room), Lease(room)
    await first.grow(BIG)
    await second.grow(BIG)
    waiting = asyncio.ensure_future(third.grow(BIG))
    await asyncio.sleep(0)
    assert not waiting.done()
    first.end()
    await waiting
    assert room.taken_bytes == 2 * BIG
    second.end()
    third.end()
    third.end()
    assert room.taken_bytes == 0


async def test_wait_is_bounded_and_gives_retry_after() -> None:
    room = BodyMemory(BIG, wait_s=0.01)
    await Lease(room).grow(BIG)
    with pytest.raises(RefusedRequestError) as refused:
        await Lease(room).grow(BIG)
    assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "2"})
    assert room.taken_bytes == BIG


async def test_waiters_behind_an_abandoned_one_are_served() -> None:
    room = BodyMemory(BIG + 10)
    holder, large, small = Lease(room), Lease(room), Lease(room)
    await holder.grow(BIG)
    too_much = asyncio.ensure_future(large.grow(BIG))
    await asyncio.sleep(0)
    await small.grow(10)  # Not counted, because it is small.
    behind = asyncio.ensure_future(room.take_bytes(10))
    await asyncio.sleep(0)
    assert not behind.done()
    too_much.cancel()
    await behind
    assert room.taken_bytes == BIG + 10


async def test_small_bodies_cost_nothing() -> None:
    room = BodyMemory(0)
    lease = Lease(room)
    await lease.grow(FREE_BYTES)
    lease.end()
    assert room.taken_bytes == 0
