"""Writers of versions and of snapshots whose steps chance interleaves."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway_acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_acceleration.upkeep.snapshotting import Snapshotting
from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import VersionPart
from caraway_core.ids import TableName
from caraway_core.manifest.values.acceleration import SnapshotSettings
from caraway_core.tables import ResultPlace
from tests.acceleration.versions.interleavings import settled
from tests.kit.interleaving import SteppedResults
from tests.kit.member_worlds import SCHEMA, Readers, World
from tests.kit.members import Member


class SnapshotMaker:
    """Stores the rows that readers see in the place of snapshots."""

    place = ResultPlace("file", "/snapshots")

    def __init__(self, readers: Readers, store: SteppedResults) -> None:
        self._readers = readers
        self._store = store

    async def make(
        self, name: TableName, _sql: str, _told: Any, _cut: Any, logged: Mapping[str, Any]
    ) -> VersionPart:
        readers = self._readers
        await readers.world.loop.step()
        assert readers.table is not None
        key = readers.table.key
        rows = readers.world.rows(readers.table, logged.get(key, readers.logs.get(key, ())))
        batch = pa.record_batch({"id": rows}, schema=SCHEMA)
        stored = making.key_of(name)
        return VersionPart(
            stored, SCHEMA, (await self._store.write_chunk(stored, 0, SCHEMA, [batch]),)
        )


def snapshotting(member: Member, store: SteppedResults) -> Snapshotting:
    maker: Any = SnapshotMaker(member.readers, store)
    kept = DatasetSnapshots(member.current, maker, store)
    return Snapshotting(member.current, kept, SnapshotSettings(use="enabled"), "retry")


async def lived(world: World, rows: int) -> tuple[Member, set[int]]:
    """Let one scheduler apply rows; returns it, and the rows it accepted."""
    member = Member(world, "zero", []).begin()
    for _ in range(rows):
        await member.insert()
    await settled(world, [member])
    return member, set(world.acknowledged)
