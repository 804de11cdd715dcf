"""Plays coroutines of several schedulers in an order that a seed chooses."""

import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from hypothesis import Phase
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from tests.kit.interleaving import SteppedLoop, SteppedResults, SteppedStore, run
from tests.kit.member_worlds import World
from tests.kit.members import Member

SEEDS = st.integers(0, 2**32)
# Shrinking is disabled: another order of events is another test.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


async def settled(world: World, members: Sequence[Member]) -> None:
    """Let every scheduler read the current version: all acknowledged rows exist, once."""
    for member in members:
        while True:
            with suppress(CarawayError):
                await member.settle()
                break
        found = member.readers.read()
        world.judge(found, world.acknowledged, world.gone, f"in the end, on {member.name}")
        invented = set(found) - world.acknowledged - world.uncertain - set(world.source)
        assert not invented
    assert not world.faults


def play(
    seed: int,
    work: Callable[[World], Coroutine[Any, Any, None]],
    lost: float = 0,
    *,
    steps_take_time: bool = True,
) -> None:
    """Run a test in its own world, in the order that the seed determines."""
    chance = random.Random(seed)

    def loses(key: str) -> bool:
        return lost > 0 and key.startswith("accelerated/") and chance.random() < lost

    async def within(loop: SteppedLoop) -> None:
        world = World(loop, SteppedStore(loop, loses), SteppedResults(loop))
        with world.dating():
            await work(world)

    try:
        run(within, chance.randrange, steps_take_time=steps_take_time)
    except BaseException as exc:
        exc.add_note(f"the order of seed {seed}")
        raise
