"""Snapshots that are damaged, or deleted by other schedulers, during reads and writes."""

import pytest

from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.protocols.results import ChunkInfo
from tests.acceleration.upkeep.snapshot_clusters import Cluster, Overtaken, snapshots_of, tried


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
