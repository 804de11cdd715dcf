"""A feed of changes over real stores, with fake readers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from caraway_acceleration.changes.feed import Feed
from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.upkeep import logs
from caraway_acceleration.upkeep.compaction import Compactor
from caraway_acceleration.versions import making
from caraway_acceleration.versions.current_version import CurrentVersion, Subject
from caraway_acceleration.versions.making import StoredSize
from caraway_acceleration.versions.version import VersionPart
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.changes import OFFSET, OP, Changes, Log, Logs, Op, log_schema
from caraway_core.ids import TableName
from caraway_core.partitions.keys import BucketKey, PartitionBy
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_plugins.stores.folder import FolderResultStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit.job_schedulers import MortalStore

NAME = TableName("orders")
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
CUT = PartitionBy((BucketKey(4, "id"),))
Upsert = tuple[int, str]


def changes(*rows: Upsert, op: Op = Op.UPSERT, offset: int | None = None) -> Changes:
    place = None if offset is None else b"source-1" + offset.to_bytes(8)
    columns = {
        "id": [each[0] for each in rows],
        "v": [each[1] for each in rows],
        OP: [op] * len(rows),
        OFFSET: [place] * len(rows),
    }
    return Changes(pa.table(columns, schema=log_schema(SCHEMA)), len(rows))


class Readers:
    """Replaces the objects that make, load and read versions."""

    def __init__(self, place: ResultPlace, results: FolderResultStore) -> None:
        self.place = place
        self.cores = 4
        self.followed: dict[str, Log] = {}
        self.fails: Callable[[Log], BaseException | None] = lambda _log: None
        self.may_load = asyncio.Event()
        self.may_load.set()
        self.made: list[Logs] = []
        self.most_rows = 0
        self._results = results

    async def load(self, name: TableName, table: StoredTable, log: Log = ()) -> int | None:
        await self.may_load.wait()
        if (failure := self.fails(log)) is not None:
            raise failure
        self.most_rows = max(self.most_rows, sum(each.chunk.row_count for each in log))
        return None

    def follow(self, table: StoredTable, log: Log) -> None:
        self.followed[table.key] = log

    async def make(
        self,
        name: TableName,
        sql: str,
        on_progress: Callable[[StoredSize], None],
        cut: PartitionBy,
        logs: Logs,
        *,
        is_kept: bool,
    ) -> VersionPart:
        """Store a row with the number of changes that the statement saw."""
        self.made.append(logs)
        count = sum(each.chunk.row_count for log in logs.values() for each in log)
        batch = pa.record_batch({"id": [0], "v": [str(count)]}, schema=SCHEMA)
        key = making.key_of(name)
        return VersionPart(key, SCHEMA, (await self._results.write_chunk(key, 0, SCHEMA, [batch]),))


@dataclass
class Taking:
    """One scheduler that applies changes."""

    current: CurrentVersion
    feed: Feed
    compactor: Compactor
    readers: Readers
    store: MortalStore
    shown: list[StoredTable] = field(default_factory=list)

    async def apply(self, made: Changes, request: str | None = None, within_s: float = 60) -> int:
        return await self.feed.apply(made, request, within_s)

    @property
    def log(self) -> Log:
        held = self.current.ours
        assert held is not None
        return held.version.log

    async def ids(self) -> list[int]:
        """Return the ids in the log that readers follow."""
        log = self.readers.followed[self.shown[-1].key]
        rows = await logs.read(self.results, log) if log else None
        return rows["id"].to_pylist() if rows is not None else []

    @property
    def results(self) -> FolderResultStore:
        return self.readers._results


@dataclass
class Fed:
    """The dataset of a feed, which tells its compactor of changes."""

    care: Compactor

    def source_schema(self) -> pa.Schema:
        return SCHEMA

    def partition_terms(self) -> PartitionBy:
        return CUT

    def changes_logged(self) -> None:
        self.care.news()


class Site:
    def __init__(self, folder: Path) -> None:
        self.place = ResultPlace("file", str(folder / "datasets"))
        self.results = FolderResultStore.at(self.place)
        self.store = SqliteStateStore(folder / "state.db", poll_s=0.02)

    @asynccontextmanager
    async def taking(self, scheduler: str = "one", origin: str = "o") -> AsyncIterator[Taking]:
        store = MortalStore(self.store)
        readers = Readers(self.place, self.results)
        shown: list[StoredTable] = []

        async def show(_name: TableName, table: StoredTable) -> None:
            shown.append(table)

        current = CurrentVersion(
            Subject(NAME, origin, Keys(("id",))),
            readers,  # type: ignore[arg-type] # implements what CurrentVersion uses
            VersionStore(store, scheduler),
            self.results,
            show,
            lambda: datetime.now(UTC),
        )
        care = Compactor(current, Recipe(NAME), self.results)
        feed = Feed(current, self.results, Fed(care))
        await feed.ensure_version()
        working = asyncio.create_task(feed.run())
        try:
            yield Taking(current, feed, care, readers, store, shown)
        finally:
            working.cancel()
            await asyncio.wait((working,))


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    made = Site(folder)
    try:
        yield made
    finally:
        await made.store.aclose()
