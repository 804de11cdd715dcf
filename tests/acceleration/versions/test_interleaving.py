"""Everything that publishes versions of a dataset, in two schedulers, in every order.

Feeds, maintenance, refreshes, long statements, and crashing and returning schedulers share one
value in the state store. Every store call is a point at which another task may run. In every order,
acknowledged changes must be read exactly once from then on.
"""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_acceleration.upkeep import compaction, logs
from tests.acceleration.versions.interleavings import PHASES, SEEDS, play, settled
from tests.kit.member_worlds import World
from tests.kit.members import TRIM_S, Member

_LOST = 0.03


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds for merging entries and for compaction."""
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 6)


Deed = tuple[str, int]
_OFTEN = ["insert"] * 8 + ["read"] * 5 + ["again"] * 2
_WHICH = st.integers(0, 1)
DEEDS = st.lists(
    st.tuples(st.sampled_from([*_OFTEN, "truncate", "reload", "crash", "wait"]), _WHICH),
    min_size=2,
    max_size=24,
)
LONG = st.lists(
    st.tuples(st.sampled_from(["insert"] * 6 + ["long", "wait", "wait"]), _WHICH),
    min_size=10,
    max_size=60,
)


async def changed(world: World, deeds: Sequence[Deed], batches: Sequence[bool]) -> None:
    """Let two schedulers apply changes of clients and of a source, next to all other work."""
    followed = [*batches, True] if batches else []
    members = [Member(world, name, followed).begin() for name in ("one", "two")]

    async def again(number: int, first: int) -> None:
        """Send a request to both schedulers alternately until it is acknowledged."""
        request_id = f"request {number}"
        while not await members[first].insert(request_id, number):
            first = 1 - first
            await world.loop.step()

    async with asyncio.TaskGroup() as tasks:
        for deed, which in deeds:
            match deed:
                case "insert":
                    tasks.create_task(members[which].insert())
                case "read":
                    tasks.create_task(members[which].statement())
                case "again":
                    tasks.create_task(again(world.number(), which))
                case "truncate":
                    tasks.create_task(members[which].truncate())
                case "reload" | "crash":
                    old = members[which]
                    readers = old.readers if deed == "reload" else None
                    members[which] = await old.again(readers)
                case "wait":
                    await asyncio.sleep(TRIM_S)
            await world.loop.step()
    for member in members:
        await member.has_followed.wait()
    await settled(world, members)


async def refreshed(world: World, deeds: Sequence[Deed]) -> None:
    """Let two schedulers refresh a dataset, and trim it."""
    members = [Member(world, name).begin() for name in ("one", "two")]
    async with asyncio.TaskGroup() as tasks:
        for deed, which in deeds:
            match deed:
                case "insert" | "again":
                    tasks.create_task(members[which].refresh())
                case "read":
                    tasks.create_task(members[which].statement())
                case "reload" | "crash":
                    old = members[which]
                    readers = old.readers if deed == "reload" else None
                    members[which] = await old.again(readers)
                case _:
                    await asyncio.sleep(TRIM_S)
            await world.loop.step()
    await settled(world, members)


async def outlived(world: World, deeds: Sequence[Deed]) -> None:
    """Let statements of two schedulers run during changes and compactions."""
    members = [Member(world, name, []).begin() for name in ("one", "two")]
    chosen = random.Random(len(deeds))
    async with asyncio.TaskGroup() as tasks:
        for deed, which in deeds:
            match deed:
                case "long":
                    lasts_s = chosen.choice((1, 100, 400, 1500))
                    tasks.create_task(members[which].long_statement(lasts_s))
                case "insert":
                    tasks.create_task(members[which].insert())
                case _:
                    await asyncio.sleep(chosen.choice((1, 20, 130)))
            await world.loop.step()
    await settled(world, members)


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(seed=SEEDS, inserts=st.lists(st.sampled_from([0, 1]), min_size=2, max_size=16))
def test_changes_to_two_schedulers_are_all_read(seed: int, inserts: list[int]) -> None:
    async def work(world: World) -> None:
        await changed(world, [("insert", each) for each in inserts], [])
        assert len(world.acknowledged) == len(inserts)

    play(seed, work)


@settings(max_examples=40, deadline=None, phases=PHASES)
@given(seed=SEEDS, deeds=DEEDS, batches=st.lists(st.booleans(), max_size=8))
def test_acknowledged_changes_are_read_from_then_on(
    seed: int, deeds: list[Deed], batches: list[bool]
) -> None:
    play(seed, lambda world: changed(world, deeds, batches), _LOST)


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(seed=SEEDS, deeds=DEEDS)
def test_refreshes_of_two_schedulers_lose_nothing(seed: int, deeds: list[Deed]) -> None:
    play(seed, lambda world: refreshed(world, deeds), _LOST)


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(seed=SEEDS, deeds=LONG)
def test_long_statements_read_what_they_started_with(seed: int, deeds: list[Deed]) -> None:
    play(seed, lambda world: outlived(world, deeds), _LOST, steps_take_time=False)


@pytest.mark.full
@pytest.mark.timeout(900)
@settings(max_examples=1000, deadline=None, phases=PHASES)
@given(seed=SEEDS, deeds=DEEDS, batches=st.lists(st.booleans(), max_size=8))
def test_of_thousands_of_orders_none_loses_a_change(
    seed: int, deeds: list[Deed], batches: list[bool]
) -> None:
    play(seed, lambda world: changed(world, deeds, batches), _LOST)


@pytest.mark.full
@pytest.mark.timeout(900)
@settings(max_examples=1000, deadline=None, phases=PHASES)
@given(seed=SEEDS, deeds=DEEDS)
def test_of_thousands_of_orders_none_loses_a_refresh(seed: int, deeds: list[Deed]) -> None:
    play(seed, lambda world: refreshed(world, deeds), _LOST)


def traced(seed: int) -> str:
    """Return the steps that a seed leads to, and the keys that they write."""
    chance, steps = random.Random(seed), list[int | list[str]]()
    kinds = ["insert", "insert", "insert", "read", "again", "truncate", "reload", "crash", "wait"]
    deeds = [(chance.choice(kinds), chance.randrange(2)) for _ in range(16)]

    async def work(world: World) -> None:
        world.loop.on_choice = steps.append
        await changed(world, deeds, [True, False, True])
        steps.append(sorted(world.results.chunks))

    play(seed, work, _LOST)
    return repr(steps)


def test_a_seed_gives_the_same_order_each_time() -> None:
    assert traced(7) == traced(7)


@pytest.mark.full
def test_a_seed_gives_the_same_order_in_each_process() -> None:
    asking = f"from {__name__} import traced; print([traced(each) for each in range(20)])"
    found = {
        subprocess.run(
            [sys.executable, "-c", asking],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=100,
        ).stdout
        for number in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
