import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caraway_operator.kube import client
from caraway_operator.kube.access import Access
from caraway_operator.kube.lease import Election, LeaseLostError, Sighting, Times, may_take
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated

TIMES = Times(duration_s=15, renew_s=0.05, give_up_s=10)


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Emulator, Clock, Election, Election]]:
    clock = Clock()
    async with emulated() as api, client.connected(Access(str(api.url).rstrip("/"))) as kube:
        one, other = (
            Election(kube, "web", "operator", name, clock, TIMES) for name in ("one", "other")
        )
        yield api, clock, one, other


def test_a_lease_is_free_if_its_holder_has_not_renewed_it_for_as_long_as_it_lasts() -> None:
    seen = Sighting("other", "stamp", 100.0)

    assert may_take(None, "me", 0.0, TIMES)
    assert may_take(Sighting("", "stamp", 100.0), "me", 100.0, TIMES)
    assert may_take(Sighting("me", "stamp", 100.0), "me", 100.0, TIMES)
    assert not may_take(seen, "me", 114.0, TIMES)
    assert may_take(seen, "me", 115.0, TIMES)


async def test_one_of_two_acts() -> None:
    async with two() as (_, _, one, other):
        assert await one.attempt()
        assert not await other.attempt()
        assert (one.is_leader, other.is_leader) == (True, False)


async def test_another_takes_over_when_the_holder_is_gone() -> None:
    async with two() as (api, clock, one, other):
        await one.attempt()
        await other.attempt()
        clock.now += 14
        assert not await other.attempt()
        clock.now += 1

        assert await other.attempt()

        assert api.get("Lease", "operator")["spec"]["holderIdentity"] == "other"
        assert api.get("Lease", "operator")["spec"]["leaseTransitions"] == 1
        assert not await one.attempt()
        assert not one.is_leader


async def test_a_holder_that_renews_keeps_it() -> None:
    async with two() as (_, clock, one, other):
        for _ in range(5):
            assert await one.attempt()
            assert not await other.attempt()
            clock.now += 14


async def test_the_end_of_an_operator_lets_the_next_one_begin_at_once() -> None:
    async with two() as (_, _, one, other):
        async with one.held():
            assert not await other.attempt()

        assert await other.attempt()


async def test_whoever_cannot_renew_stops_before_another_begins() -> None:
    async with two() as (api, clock, one, _):
        with pytest.raises(LeaseLostError, match="another operator may act"):
            async with one.held():
                api.refuse = lambda _verb, which: (503, "no") if which.kind == "Lease" else None
                clock.now += 11
                await asyncio.Event().wait()


async def test_an_error_of_the_work_is_told_as_it_is() -> None:
    async with two() as (_, _, one, _):
        with pytest.raises(ZeroDivisionError):
            async with one.held():
                raise ZeroDivisionError


async def test_two_that_ask_at_once_do_not_both_get_it() -> None:
    async with two() as (_, clock, one, other):
        await one.attempt()
        await other.attempt()
        clock.now += 20
        one.is_leader = False

        async def settled() -> bool:
            return sum(await asyncio.gather(other.attempt(), one.attempt())) == 1

        await eventually(settled, "one holds the Lease")
