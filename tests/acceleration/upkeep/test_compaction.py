"""Merged entries and compactions while two schedulers log changes."""

import asyncio
from collections.abc import Callable

import pytest

from caraway_acceleration.upkeep import compaction, logs
from caraway_acceleration.versions.version import DatasetVersion
from caraway_acceleration.versions.versions import Successor
from tests.acceleration.versions.interleavings import play, settled
from tests.kit.member_worlds import World
from tests.kit.members import Member

_SLOW_STEPS = 200
"""A rewrite takes as long as several dozen changes."""
_CLIENTS, _CHANGES = 4, 40


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds for merging entries and for compaction."""
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 6)


async def begun(world: World) -> list[Member]:
    members = [Member(world, name, []).begin() for name in ("one", "two")]
    for member in members:
        await member.until_shown()
    return members


async def insert(member: Member, times: int) -> int:
    """Insert rows one after another; returns the maximum length of the log."""
    longest = 0
    for _ in range(times):
        assert await member.insert()
        assert member.current.held is not None
        longest = max(longest, len(member.current.held.version.log))
    return longest


@pytest.mark.parametrize("seed", range(2))
def test_two_schedulers_never_compact_in_vain(seed: int) -> None:
    async def work(world: World) -> None:
        members = await begun(world)
        for member in members:
            member.readers.steps = _SLOW_STEPS
        async with asyncio.TaskGroup() as tasks:
            inserting = [
                tasks.create_task(insert(members[number % 2], _CHANGES))
                for number in range(_CLIENTS)
            ]
        await asyncio.sleep(1)  # Virtual time advances only when no task can run.
        compactions = sum(member.compactor.compactions for member in members)
        assert compactions > 1
        assert sum(member.readers.made for member in members) == compactions
        assert max(each.result() for each in inserting) < _CLIENTS * _CHANGES / 3
        await settled(world, members)

    play(seed, work, steps_take_time=False)


def overtaken(
    members: list[Member], times: int, concerns: Callable[[DatasetVersion], bool]
) -> list[str]:
    """Let the other scheduler log a change right before each matching flip.

    Returns the base and the first entry that each of these flips was about to publish.
    """
    tries: list[str] = []

    def between(one: Member, two: Member) -> None:
        real = one.current.loaded

        async def loaded(successor: Successor) -> Successor:
            version = successor.version
            if concerns(version):
                tries.append(f"{version.key} {version.log[0].chunk.key if version.log else ''}")
                if len(tries) <= times:
                    assert await two.insert()
            return await real(successor)

        one.current.loaded = loaded  # type: ignore[method-assign]

    between(*members)
    between(*reversed(members))
    return tries


def test_concurrent_changes_do_not_repeat_a_compaction() -> None:
    overtakes = 2 * compaction._TRIES + 1

    async def work(world: World) -> None:
        members = await begun(world)
        held = members[0].current.held
        assert held is not None
        bases = [held.version.key]

        def is_first_made(version: DatasetVersion) -> bool:
            if version.key not in bases:
                bases.append(version.key)
            return bases.index(version.key) == 1

        tries = overtaken(members, overtakes, is_first_made)
        await insert(members[0], compaction.LEAST_LOGGED + 1)
        await asyncio.sleep(1)
        assert len(tries) > overtakes
        made = sum(member.readers.made for member in members)
        assert made == sum(member.compactor.compactions for member in members)
        await settled(world, members)

    play(1, work, steps_take_time=False)


def test_concurrent_changes_do_not_repeat_a_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 1000)

    async def work(world: World) -> None:
        members = await begun(world)
        # No other code creates entries with several rows here.
        tries = overtaken(
            members, 3, lambda version: any(each.chunk.row_count > 1 for each in version.log)
        )
        await insert(members[0], logs.MOST_ENTRIES + 1)
        await asyncio.sleep(1)
        assert len(set(tries[:4])) == 1
        await settled(world, members)

    play(1, work, steps_take_time=False)
