"""Owners that are alive: an owner is given up only after a whole period without its entry."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core import errors
from caraway_scheduler.jobs.owners import DisplacedError, JobOwner, Owners
from tests.kit.clocks import Clock
from tests.scheduler.jobs.stepping import World, play

TTL_S, GRACE_S = 6.0, 3.0


def owners(
    world: World,
    name: str = "one",
    incarnation: str = "i1",
    clock: Callable[[], float] | None = None,
) -> Owners:
    return Owners(
        world.store, JobOwner(name, incarnation), clock or world.loop.time, GRACE_S, TTL_S
    )


async def here(*all_: Owners) -> None:
    """Let each of them renew its entry, then look."""
    for each in all_:
        await each.renew()
    for each in all_:
        await each.look()


@pytest.mark.parametrize(
    ("scheduler_id", "key"),
    [("one", "job-owners/one"), ("a/b", "job-owners/a/b"), ("", "job-owners/")],
)
def test_owner_names_its_scheduler_and_its_life(scheduler_id: str, key: str) -> None:
    owner = JobOwner(scheduler_id, "i1")
    assert (str(owner), owner.key) == (f"{scheduler_id}/i1", key)


def test_those_who_renew_are_there_and_those_who_withdraw_are_gone_in_time() -> None:
    async def work(world: World) -> None:
        one, two = owners(world), owners(world, "two")
        await here(one, two)
        assert not one.is_gone("two/i1") and not two.is_gone("one/i1")
        await two.withdraw()
        await one.look()
        assert not one.is_gone("two/i1"), "the first miss begins its absence"
        await asyncio.sleep(GRACE_S - 0.5)
        await here(one)
        assert not one.is_gone("two/i1")
        await asyncio.sleep(1)
        await here(one)
        assert one.is_gone("two/i1")

    play(work)


def test_entry_expires_without_renewal_and_lives_with_it() -> None:
    async def work(world: World) -> None:
        one, two, three = owners(world), owners(world, "two"), owners(world, "three")
        await here(one, two, three)
        for _ in range(20):
            await asyncio.sleep(1)
            await here(one, two)
            assert not one.is_gone("two/i1")
            one.is_gone("three/i1")
        assert one.is_gone("three/i1")

    play(work)


def test_before_the_first_look_nobody_is_gone_and_jobs_without_owner_are_free() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        assert not one.is_gone("two/i1") and one.is_gone("")
        await asyncio.sleep(100)
        assert not one.is_gone("two/i1")

    play(work)


def test_own_jobs_are_never_given_up_even_while_the_own_entry_is_missing() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        await one.look()
        assert not one.is_gone("one/i1")
        await asyncio.sleep(100)
        await one.look()
        assert not one.is_gone("one/i1")

    play(work)


def test_process_that_began_anew_has_forgotten_its_jobs_at_once() -> None:
    async def work(world: World) -> None:
        one, two = owners(world), owners(world, "two", "old")
        await here(one, two)
        again = owners(world, "two", "new")
        await here(one, again)
        assert one.is_gone("two/old") and not one.is_gone("two/new")
        assert again.is_gone("two/old"), "nor is it its own job any more"

    play(work)


def test_the_same_prefix_is_not_the_same_scheduler() -> None:
    async def work(world: World) -> None:
        one, long = owners(world), owners(world, "two/a", "i9")
        await here(one, long)
        assert not one.is_gone("two/i1"), "another scheduler, absent for no time yet"
        assert one.is_gone("two/a/i1")

    play(work)


def test_store_that_was_away_makes_every_absence_begin_again() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        await here(one)
        assert not one.is_gone("two/i1")
        await asyncio.sleep(GRACE_S + 1)
        world.store.away = errors.StateAwayError("away")
        with pytest.raises(errors.StateAwayError):
            await one.look()
        assert not one.is_gone("two/i1"), "nothing is known now"
        world.store.away = None
        await here(one)
        assert not one.is_gone("two/i1"), "it too needs time to come back"
        await asyncio.sleep(GRACE_S)
        assert one.is_gone("two/i1")

    play(work)


def test_owner_that_came_back_has_a_whole_grace_again() -> None:
    async def work(world: World) -> None:
        one, two = owners(world), owners(world, "two")
        await here(one)
        one.is_gone("two/i1")
        await asyncio.sleep(GRACE_S - 1)
        await here(two, one)
        await two.withdraw()
        await one.look()
        assert not one.is_gone("two/i1")
        await asyncio.sleep(GRACE_S - 1)
        assert not one.is_gone("two/i1")
        await asyncio.sleep(1)
        assert one.is_gone("two/i1")

    play(work)


def test_second_process_under_one_id_displaces_the_first() -> None:
    async def work(world: World) -> None:
        first, second = owners(world, "one", "a"), owners(world, "one", "b")
        await first.renew()
        await second.renew()
        with pytest.raises(DisplacedError, match="scheduler-id"):
            await first.renew()
        await second.renew()

    play(work)


def test_expired_entry_is_written_again_and_displaces_nobody() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        await one.renew()
        await asyncio.sleep(TTL_S + 1)
        await one.renew()
        await one.look()
        assert await world.store.get("job-owners/one") is not None

    play(work)


def test_renewal_whose_answer_was_lost_is_no_displacement() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        await one.renew()
        world.store._loses = lambda _: True
        with pytest.raises(errors.StateUnsureError):
            await one.renew()
        world.store._loses = lambda _: False
        await one.renew()
        await one.renew()

    play(work)


def test_withdrawing_leaves_the_entry_of_who_came_after() -> None:
    async def work(world: World) -> None:
        first, second = owners(world, "one", "a"), owners(world, "one", "b")
        await first.renew()
        await second.renew()
        await first.withdraw()
        entry = await world.store.get("job-owners/one")
        assert entry is not None and entry.value == b"one/b"

    play(work)


def test_withdrawing_never_fails_and_ends_in_time() -> None:
    async def work(world: World) -> None:
        one = owners(world)
        await one.withdraw()  # It never was there.
        await one.renew()
        world.store.away = errors.StateAwayError("away")
        await one.withdraw()

        async def hangs(*_: object, **__: object) -> int:
            await asyncio.Event().wait()
            return 0

        world.store.compare_and_set = hangs  # type: ignore[method-assign]
        began = world.loop.time()
        await one.withdraw()
        assert world.loop.time() - began < 5

    play(work)


@settings(max_examples=60, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(["look", "ask", "on", "off"]), st.floats(0, 4)), max_size=20)
)
def test_nobody_is_gone_who_was_seen_within_the_grace(steps: list[tuple[str, float]]) -> None:
    async def work(world: World) -> None:
        clock = Clock()
        one, two = owners(world, clock=clock), owners(world, "two")
        last_seen, is_on = clock.now, False
        for step, passes_s in steps:
            clock.now += passes_s
            if step == "on":
                await two.renew()
                is_on = True
            elif step == "off":
                await two.withdraw()
                is_on = False
            elif step == "look":
                await one.look()
                last_seen = clock.now if is_on else last_seen
            elif one.is_gone("two/i1"):
                assert clock.now - last_seen >= GRACE_S

    play(work)
