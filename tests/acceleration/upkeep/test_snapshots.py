"""Snapshots that are damaged, or deleted by other schedulers, during reads and writes."""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

from caraway_acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_acceleration.versions.versions import Successor
from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.protocols.results import ChunkInfo
from tests.acceleration.versions.test_interleaving import play
from tests.acceleration.versions.test_interleaving_writes import SnapshotMaker, lived
from tests.kit.interleaving import SteppedResults, SteppedStore
from tests.kit.members import Member, World

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


@pytest.mark.parametrize("reads", [(1,), (2,), (1, 2, 4)])
def test_a_start_uses_the_newest_snapshot_when_its_own_is_deleted(
    reads: tuple[int, ...],
) -> None:
    async def work(cluster: Cluster) -> None:
        store = Overtaken(cluster.store, cluster.overtake, *reads)
        first = await snapshots_of(cluster.other, store).start()
        assert sorted(cluster.rows(first)) == sorted(cluster.writer.readers.read())
        assert first is not None
        assert cluster.left() == first.version.keys

    tried(work)


def test_a_start_that_is_overtaken_each_time_ends_with_the_error() -> None:
    async def work(cluster: Cluster) -> None:
        store = Overtaken(cluster.store, cluster.overtake)
        with pytest.raises(ExecutionError, match="is not there"):
            await snapshots_of(cluster.other, store).start()
        assert store.reads == 5

    tried(work)


def test_a_damaged_snapshot_is_an_error_at_once() -> None:
    async def work(cluster: Cluster) -> None:
        async def damage() -> None:
            for key in [each for each in cluster.store.chunks if each.startswith("dm")]:
                del cluster.store.chunks[key]

        store = Overtaken(cluster.store, damage)
        with pytest.raises(ExecutionError, match="is not there"):
            await snapshots_of(cluster.other, store).start()
        assert store.reads == 1

    tried(work)


def test_a_version_is_replaced_by_the_newest_snapshot_when_the_last_one_is_removed() -> None:
    async def work(cluster: Cluster) -> None:
        writer = cluster.writer

        async def write_the_same() -> None:
            for _ in range(2):
                await snapshots_of(writer, cluster.store).write()

        store = Overtaken(cluster.store, write_the_same, 2)
        held = writer.current.ours
        assert held is not None
        successor = await snapshots_of(writer, store).replacement(held)
        assert successor is not None
        rows = writer.world.rows(writer.current.table(successor.version), ())
        assert sorted(rows) == sorted(writer.readers.read())

    tried(work)


def test_concurrent_writers_delete_old_snapshots_once() -> None:
    async def work(cluster: Cluster) -> None:
        await cluster.write(2)
        done: list[bool] = []

        async def write_beside() -> None:
            if not done:
                done.append(True)
                await cluster.write(2)

        store = Overtaken(cluster.store, write_beside, 1)
        assert await snapshots_of(cluster.writer, store).write() is not None
        marks = [key for key in cluster.store.chunks if key.startswith("md-")]
        assert len(marks) == 2

    tried(work)


def test_an_old_snapshot_that_is_damaged_is_removed() -> None:
    async def work(cluster: Cluster) -> None:
        described = next(each for each in cluster.store.chunks if each.startswith("dm"))
        del cluster.store.chunks[described]
        await cluster.write(2)
        first = await snapshots_of(cluster.other, cluster.store).start()
        assert sorted(cluster.rows(first)) == sorted(cluster.writer.readers.read())
        with pytest.raises(CarawayError):
            cluster.store.rows(described, ChunkInfo(0, 1, 0, ""))

    tried(work)
