"""Stored responses: the limits of each key, over all schedulers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from caraway_assist.models.conversations import Conversations, KeptResponse
from caraway_core.concurrency.quotas import QuotaLimits
from caraway_core.ids import PrincipalId
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit.clocks import Clock

ANN, BEN = PrincipalId("key-ann"), PrincipalId("key-ben")


def response(number: int, text: str = "") -> KeptResponse:
    return KeptResponse({"id": f"resp_{number:048x}", "text": text}, [])


async def kept(of: Conversations, principal: PrincipalId, numbers: Sequence[int]) -> list[int]:
    found = [await of.find(principal, response(each).response["id"]) for each in numbers]
    return [number for number, each in zip(numbers, found, strict=True) if each is not None]


@asynccontextmanager
async def stored(folder: Path) -> AsyncIterator[SqliteStateStore]:
    store = SqliteStateStore(folder / "state.db")
    try:
        yield store
    finally:
        await store.aclose()


async def test_a_key_keeps_its_newest_responses_and_takes_none_of_others(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as state:
        limits = QuotaLimits(most_each=3)
        schedulers = [Conversations(state, limits) for _ in range(2)]
        assert await schedulers[0].keep(BEN, response(0))
        for number in range(1, 7):
            assert await schedulers[number % 2].keep(ANN, response(number))
        assert await kept(schedulers[0], ANN, range(7)) == [4, 5, 6]
        assert await kept(schedulers[1], BEN, range(7)) == [0]
        assert sum(each.quota.evictions for each in schedulers) == 3
        assert len(await state.scan("responses/")) == 4


async def test_bytes_of_a_key_are_limited(tmp_path: Path) -> None:
    async with stored(tmp_path) as state:
        of = Conversations(state, QuotaLimits(most_bytes_each=3_000))
        for number in range(5):
            assert await of.keep(ANN, response(number, "x" * 900))
        assert await kept(of, ANN, range(5)) == [2, 3, 4]
        assert not await of.keep(ANN, response(5, "x" * 3_000)), "it is larger than the limit"
        assert await kept(of, ANN, range(5)) == [2, 3, 4]
        assert of.quota.size_bytes < 3_000


async def test_deleted_and_expired_responses_make_no_others_go(tmp_path: Path) -> None:
    async with stored(tmp_path) as state:
        clock = Clock()
        of = Conversations(state, QuotaLimits(most_each=2), kept_s=100, clock=clock)
        assert [await of.keep(ANN, response(number)) for number in (1, 2)] == [True, True]
        assert await of.forget(ANN, response(2).response["id"])
        assert not await of.forget(ANN, response(2).response["id"])
        assert await of.keep(ANN, response(3))
        assert await kept(of, ANN, range(4)) == [1, 3]
        clock.now += 101
        assert [await of.keep(ANN, response(number)) for number in (4, 5)] == [True, True]
        assert (of.quota.evictions, len(of.quota)) == (0, 2)


async def test_many_responses_at_once_are_all_listed(tmp_path: Path) -> None:
    async with stored(tmp_path) as state:
        of = Conversations(state, QuotaLimits(most_each=10))
        assert all(await asyncio.gather(*(of.keep(ANN, response(each)) for each in range(30))))
        assert len(await kept(of, ANN, range(30))) == 10
