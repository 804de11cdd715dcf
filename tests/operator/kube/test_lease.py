import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.naming import OPERATOR
from caraway_operator.kube.lease import (
    LeaderElection,
    LeaseLostError,
    LeaseTimes,
    ObservedLease,
    may_acquire,
)
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated

TIMES = LeaseTimes(duration_s=15, renew_s=0.05, give_up_s=10)


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Emulator, Clock, LeaderElection, LeaderElection]]:
    clock = Clock()
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        one, other = (
            LeaderElection(kube, "web", "operator", name, clock, TIMES) for name in ("one", "other")
        )
        yield api, clock, one, other


def test_a_lease_is_free_if_it_was_not_renewed_for_its_duration() -> None:
    seen = ObservedLease("other", "stamp", 100.0)

    assert may_acquire(None, "me", 0.0, TIMES)
    assert may_acquire(ObservedLease("", "stamp", 100.0), "me", 100.0, TIMES)
    assert may_acquire(ObservedLease("me", "stamp", 100.0), "me", 100.0, TIMES)
    assert not may_acquire(seen, "me", 114.0, TIMES)
    assert may_acquire(seen, "me", 115.0, TIMES)


async def test_only_one_of_two_operators_leads() -> None:
    async with two() as (_, _, one, other):
        assert await one.try_acquire()
        assert not await other.try_acquire()
        assert (one.is_leader, other.is_leader) == (True, False)


async def test_another_operator_takes_over_when_the_holder_has_failed() -> None:
    async with two() as (api, clock, one, other):
        await one.try_acquire()
        await other.try_acquire()
        clock.now += 14
        assert not await other.try_acquire()
        clock.now += 1

        assert await other.try_acquire()

        assert api.get("Lease", "operator")["spec"]["holderIdentity"] == "other"
        assert api.get("Lease", "operator")["spec"]["leaseTransitions"] == 1
        assert not await one.try_acquire()
        assert not one.is_leader


async def test_a_holder_that_renews_the_lease_keeps_it() -> None:
    async with two() as (_, clock, one, other):
        for _ in range(5):
            assert await one.try_acquire()
            assert not await other.try_acquire()
            clock.now += 14


async def test_an_operator_that_exits_releases_the_lease() -> None:
    async with two() as (_, _, one, other):
        async with one.hold_lease():
            assert not await other.try_acquire()

        assert await other.try_acquire()


async def test_a_holder_that_cannot_renew_stops_before_another_one_starts() -> None:
    async with two() as (api, clock, one, _):
        with pytest.raises(LeaseLostError, match="another one may be active"):
            async with one.hold_lease():
                api.refuse = lambda _verb, which: (503, "no") if which.kind == "Lease" else None
                clock.now += 11
                await asyncio.Event().wait()


async def test_an_error_in_the_body_is_raised_unchanged() -> None:
    async with two() as (_, _, one, _):
        with pytest.raises(ZeroDivisionError):
            async with one.hold_lease():
                raise ZeroDivisionError


async def test_two_concurrent_attempts_do_not_both_succeed() -> None:
    async with two() as (_, clock, one, other):
        await one.try_acquire()
        await other.try_acquire()
        clock.now += 20
        one.is_leader = False

        async def settled() -> bool:
            return sum(await asyncio.gather(other.try_acquire(), one.try_acquire())) == 1

        await eventually(settled, "one holds the Lease")
