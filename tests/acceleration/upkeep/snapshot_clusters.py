"""Schedulers that share a state store and make snapshots of one dataset, in any order of steps."""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pyarrow as pa

from caraway_acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_acceleration.versions.versions import Successor
from caraway_core.protocols.results import ChunkInfo
from tests.acceleration.versions.interleaved_writes import SnapshotMaker, lived
from tests.acceleration.versions.interleavings import play
from tests.kit.interleaving import SteppedResults, SteppedStore
from tests.kit.member_worlds import World
from tests.kit.members import Member

Overtake = Callable[[], Coroutine[Any, Any, None]]


class Overtaken(SteppedResults):
    """The store of one reader, with an action right before some of its reads."""

    def __init__(self, store: SteppedResults, overtake: Overtake, *reads: int) -> None:
        """Create it; `reads` are the numbers of these reads, by default all of them."""
        super().__init__(store._loop)
        self.chunks = store.chunks
        self.reads = 0
        self._overtake = overtake
        self._overtaken = reads

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        self.reads += 1
        if not self._overtaken or self.reads in self._overtaken:
            await self._overtake()
        async for batch in super().read_chunk(key, chunk):
            yield batch


def snapshots_of(member: Member, store: SteppedResults) -> DatasetSnapshots:
    maker: Any = SnapshotMaker(member.readers, store)
    return DatasetSnapshots(member.current, maker, store)


class Cluster:
    """One scheduler writes snapshots; another, with its own state, starts from them."""

    def __init__(self, writer: Member, world: World) -> None:
        self.writer = writer
        self.store = SteppedResults(world.loop)
        own = World(world.loop, SteppedStore(world.loop), SteppedResults(world.loop))
        self.other = Member(own, "other", [])

    async def write(self, times: int = 1) -> None:
        for _ in range(times):
            await self.writer.insert()
            await snapshots_of(self.writer, self.store).write()

    async def overtake(self) -> None:
        """Write enough snapshots that the existing ones are deleted."""
        await self.write(2)

    def rows(self, first: Successor | None) -> list[int]:
        assert first is not None
        other = self.other
        return other.world.rows(other.current.table(first.version), ())

    def left(self) -> set[str]:
        """Return the stored keys of the other cluster."""
        return set(self.other.world.results.chunks)


def tried(work: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def within(world: World) -> None:
        writer, _ = await lived(world, 1)
        cluster = Cluster(writer, world)
        await cluster.write()
        await work(cluster)
        await writer.end()

    play(1, within, steps_take_time=False)
