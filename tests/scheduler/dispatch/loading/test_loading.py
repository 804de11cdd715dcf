"""Which executors load which partitions of a version, and what a loss does to that."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Log
from caraway_core.errors import ExecutionError, ExecutorLostError, ShuttingDownError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.partitions.keys import BucketKey, PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_engine.rows import entries
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.loading.loading import Loader
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS

T = TableName("t")
E1, E2, E3 = map(ExecutorId, ("e1", "e2", "e3"))
LARGE, SMALL = Policy(small_table_bytes=0), Policy(small_table_bytes=1 << 30)
NO_LOG: Any = ()
CHUNKS = tuple(ChunkInfo(number, 10, 100, f"{number:064x}") for number in range(8))
VERSION = StoredTable(
    pa.schema([("id", pa.int64())]), ResultPlace("file", "/nowhere"), "v1", CHUNKS
)
WITH_KEY = replace(VERSION, keys=Keys(("id",)))


@dataclass
class FakeFleet:
    """Records the loads of each executor; an executor fails as often as it has failures."""

    failures: dict[ExecutorId, list[Exception]] = field(default_factory=dict)
    loads: list[tuple[ExecutorId, tuple[str, ...]]] = field(default_factory=list)
    restored: dict[ExecutorId, int] = field(default_factory=dict)

    async def load(
        self, executor_id: ExecutorId, _origin: str, _table: TableName, spec: StoredTable,
        names: Sequence[str], _log: Log,
    ) -> int:  # fmt: skip
        self.loads.append((executor_id, tuple(names)))
        self._fail(executor_id)
        return 10 * len(names)

    async def put_back(self, executor_id: ExecutorId, *_others: object) -> int:
        self._fail(executor_id)
        return self.restored.get(executor_id, 0)

    def _fail(self, executor_id: ExecutorId) -> None:
        if self.failures.get(executor_id):
            raise self.failures[executor_id].pop(0)

    def copies(self) -> Counter[str]:
        """Return how often each partition was loaded."""
        return Counter(name for _, names in self.loads for name in names)


@dataclass
class FakeMembership:
    executors: list[ExecutorId]
    stays: bool = False

    def ready(self) -> list[Any]:
        return [SimpleNamespace(executor_id=each) for each in self.executors]

    def lost(self, executor_id: ExecutorId, _cause: str) -> None:
        if not self.stays:
            self.executors.remove(executor_id)


class Site:
    def __init__(self, *executors: ExecutorId, policy: Policy = LARGE, stays: bool = False) -> None:
        self.fleet, self.membership = FakeFleet(), FakeMembership(list(executors), stays)
        fleet, membership = self.fleet, self.membership
        self.loader = Loader(fleet, membership, "me", policy)  # type: ignore[arg-type] # fakes


def lost(executor_id: ExecutorId) -> ExecutorLostError:
    return ExecutorLostError(executor_id, "it went away")


async def test_each_partition_is_loaded_once_and_rows_are_counted_once() -> None:
    site = Site(E1, E2, E3)
    assert await site.loader.load(T, VERSION, NO_LOG) == 80
    assert site.fleet.copies() == {chunk.checksum: 1 for chunk in CHUNKS}
    assert {executor for executor, _ in site.fleet.loads} == {E1, E2, E3}


async def test_further_copies_are_loaded_and_not_counted() -> None:
    site = Site(E1, E2, E3)
    divided = replace(VERSION, cut=PartitionBy((BucketKey(len(CHUNKS), "id"),)), replicas=2)
    names = entries.buckets(divided) or ()
    chunks = (replace(each, partition=name) for each, name in zip(CHUNKS, names, strict=True))
    version = replace(divided, chunks=tuple(chunks))
    assert await site.loader.load(T, version, NO_LOG) == 80
    copies = site.fleet.copies()
    assert len(copies) == len(CHUNKS) and set(copies.values()) == {2}
    for name in copies:
        owners = [executor for executor, names in site.fleet.loads if name in names]
        assert len(set(owners)) == 2


async def test_small_version_is_loaded_only_to_count_its_rows() -> None:
    site = Site(E1, E2, policy=SMALL)
    assert await site.loader.load(T, VERSION, NO_LOG) == 80
    assert site.fleet.loads == []
    assert await site.loader.load(T, WITH_KEY, NO_LOG) == 80
    assert [executor for executor, names in site.fleet.loads if names] == [E1]


async def test_version_whose_rows_are_known_needs_no_executor() -> None:
    assert await Site().loader.load(T, VERSION, NO_LOG) == 80
    with pytest.raises(Exception, match="executor"):
        await Site().loader.load(T, WITH_KEY, NO_LOG)


async def test_lost_executor_leaves_its_share_to_the_others() -> None:
    site = Site(E1, E2, E3)
    site.fleet.failures = {E2: [lost(E2)]}
    assert await site.loader.load(T, VERSION, NO_LOG) == 80
    assert site.membership.executors == [E1, E3]
    again = [(executor, names) for executor, names in site.fleet.loads if executor != E2][-2:]
    assert sorted(name for _, names in again for name in names) == [c.checksum for c in CHUNKS]


async def test_executors_that_are_always_lost_are_an_error() -> None:
    site = Site(E1, stays=True)
    site.fleet.failures = {E1: [lost(E1) for _ in range(ATTEMPTS + 1)]}
    with pytest.raises(ExecutorLostError):
        await site.loader.load(T, VERSION, NO_LOG)
    assert len(site.fleet.failures[E1]) == 1
    site = Site(E1)
    site.fleet.failures = {E1: [lost(E1)]}
    with pytest.raises(ExecutorLostError):
        await site.loader.load(T, VERSION, NO_LOG)


async def test_executor_that_stops_is_asked_again_and_other_errors_are_final() -> None:
    site = Site(E1)
    site.fleet.failures = {E1: [ShuttingDownError("it stops")]}
    assert await site.loader.load(T, VERSION, NO_LOG) == 80
    site.fleet.failures = {E1: [ExecutionError("two rows have the same key")]}
    with pytest.raises(ExecutionError, match="same key"):
        await site.loader.load(T, VERSION, NO_LOG)
    assert len(site.fleet.loads) == 3


async def test_future_owner_loads_its_share_of_the_new_division_only() -> None:
    site = Site(E1, E2)
    for executor in (E1, E2, E3):
        await site.loader.load_share(T, VERSION, NO_LOG, (E1, E2, E3), executor)
    assert site.fleet.copies() == {chunk.checksum: 1 for chunk in CHUNKS}
    small = Site(E1, policy=SMALL)
    await small.loader.load_share(T, VERSION, NO_LOG, (E1, E2), E1)
    assert small.fleet.loads == []


async def test_damaged_chunks_are_restored_by_whoever_can() -> None:
    site = Site(E1, E2, E3)
    site.fleet.failures, site.fleet.restored = {E1: [lost(E1)]}, {E2: 2, E3: 1}
    assert await site.loader.put_back(T, VERSION, NO_LOG) == 3
    site.fleet.failures, site.fleet.restored = {E2: [ExecutionError("the disk is full")]}, {}
    with pytest.raises(ExecutionError, match="disk is full"):
        await site.loader.put_back(T, VERSION, NO_LOG)
    assert await site.loader.put_back(T, VERSION, NO_LOG) == 0
