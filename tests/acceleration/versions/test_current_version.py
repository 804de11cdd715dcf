"""Readers never go back to an older version, even when a dataset is replaced."""

import asyncio

from tests.kit.interleaving import SteppedLoop, SteppedResults, SteppedStore, run
from tests.kit.member_worlds import World
from tests.kit.members import Member


def test_a_stopped_current_version_does_not_take_readers_back() -> None:
    """A statement may wait for a dataset that is replaced meanwhile."""

    async def work(loop: SteppedLoop) -> None:
        world = World(loop, SteppedStore(loop), SteppedResults(loop))
        writer = Member(world, "other", []).begin()
        assert await writer.insert()
        old = Member(world, "one", [])
        # It has read the current version, and is about to show it.
        await old.current.look()
        assert await writer.insert()
        old.current.stop()
        new = Member(world, "one", [], old.readers)
        await new.settle()
        shown = new.readers.read()
        assert len(shown) == 2
        await asyncio.gather(old.current.show(), old.current.ended())
        assert new.readers.read() == shown
        assert not world.faults

    run(work, lambda _: 0)
