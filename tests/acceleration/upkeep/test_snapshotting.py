"""A snapshot that is chosen while others work on the same dataset."""

import pytest

from caraway_acceleration.upkeep.snapshotting import Snapshotting
from caraway_core.errors import UnavailableError
from tests.acceleration.upkeep.snapshot_clusters import Cluster, Overtaken, tried
from tests.acceleration.versions.interleaved_writes import snapshotting
from tests.kit.interleaving import SteppedResults
from tests.kit.member_worlds import World
from tests.kit.members import Member


async def first_of(chooser: Snapshotting) -> int:
    return (await chooser.store.listed(10))[0].number


def choices(store: SteppedResults) -> int:
    return len([key for key in store.chunks if key.startswith("md-") and ".c" in key])


def test_the_rows_of_a_chosen_snapshot_are_read_by_all_schedulers() -> None:
    async def work(cluster: Cluster) -> None:
        writer = cluster.writer
        before = sorted(writer.readers.read())
        await cluster.write()
        assert sorted(writer.readers.read()) != before
        chooser = snapshotting(writer, cluster.store)
        await chooser.choose(await first_of(chooser))
        assert sorted(writer.readers.read()) == before
        assert choices(cluster.store) == 1
        other = Member(writer.world, "two", [])
        await other.current.look()
        await other.current.show()
        assert sorted(other.readers.read()) == before
        assert writer.current.shown is not None
        assert await chooser.store.holds(writer.current.shown)
        writer.world.acknowledged.intersection_update(before)

    tried(work)


def test_a_choice_that_a_newer_version_overtakes_changes_nothing() -> None:
    async def work(cluster: Cluster) -> None:
        writer = cluster.writer
        await cluster.write()

        async def insert() -> None:
            await writer.insert()

        # The second read is that of the rows.
        chooser = snapshotting(writer, Overtaken(cluster.store, insert, 2))
        number = await first_of(snapshotting(writer, cluster.store))
        with pytest.raises(UnavailableError, match="changed while the snapshot was read"):
            await chooser.choose(number)
        assert choices(cluster.store) == 0
        assert set(writer.readers.read()) >= writer.world.acknowledged

    tried(work)


def test_only_one_scheduler_chooses_at_a_time() -> None:
    async def work(cluster: Cluster) -> None:
        writer = cluster.writer
        world: World = writer.world
        other = snapshotting(Member(world, "two", []), cluster.store)
        number = await first_of(other)
        refused: list[str] = []

        async def choose_beside() -> None:
            with pytest.raises(UnavailableError) as failed:
                await other.choose(number)
            refused.append(failed.value.message)

        chooser = snapshotting(writer, Overtaken(cluster.store, choose_beside, 2))
        await chooser.choose(number)
        assert "another scheduler writes or chooses a snapshot" in refused[0]
        assert choices(cluster.store) == 1

    tried(work)
