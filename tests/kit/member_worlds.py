"""The world of members: what was sent and acknowledged, and the readers that judge it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa

from caraway_acceleration.versions import making
from caraway_acceleration.versions.making import StoredSize
from caraway_acceleration.versions.version import VersionPart
from caraway_core.changes import OFFSET, OP, Changes, Log, Logs, Op, log_schema
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.tables import ResultPlace, StoredTable
from tests.kit.interleaving import SteppedLoop, SteppedResults, SteppedStore

NAME = TableName("orders")
SCHEMA = pa.schema([("id", pa.int64())])
PLACE = ResultPlace("file", "/data")
CUT = PartitionBy()


def changes(*ids: int, op: Op = Op.INSERT) -> Changes:
    columns = {"id": list(ids), OP: [op] * len(ids), OFFSET: [None] * len(ids)}
    return Changes(pa.table(columns, schema=log_schema(SCHEMA)), len(ids))


def truncation() -> Changes:
    columns = {"id": [None], OP: [Op.TRUNCATE], OFFSET: [None]}
    return Changes(pa.table(columns, schema=log_schema(SCHEMA)), 1)


@dataclass
class World:
    """The state that all schedulers share, and what clients know of it."""

    loop: SteppedLoop
    store: SteppedStore
    results: SteppedResults
    acknowledged: set[int] = field(default_factory=set)
    uncertain: set[int] = field(default_factory=set)
    """Rows whose write was not acknowledged; they may or may not be visible."""
    gone: set[int] = field(default_factory=set)
    truncations: int = 0
    sent: dict[int, int] = field(default_factory=dict)
    """The number of truncations that had begun, or ended, when a row was sent first."""
    source: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    numbers: int = 0
    one_truncation: asyncio.Lock = field(default_factory=asyncio.Lock)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def clock(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.loop.time())

    @contextmanager
    def dating(self) -> Iterator[None]:
        """Make keys contain the time of this world's clock."""
        clock = SimpleNamespace(time=lambda: self.clock().timestamp())
        with mock.patch.object(making, "time", clock):
            yield

    def send(self, number: int) -> None:
        """Record that a client sends a row."""
        self.uncertain.add(number)
        self.sent.setdefault(number, self.truncations)

    def acknowledge(self, number: int) -> None:
        """Record that a client got 200; a TRUNCATE at that time may be ordered after it."""
        if self.sent[number] == self.truncations and self.truncations % 2 == 0:
            self.acknowledged.add(number)

    def rows(self, table: StoredTable, log: Log) -> list[int]:
        """Return the rows that a statement reads from a version with this log."""
        found: list[int] = []
        for chunk in table.chunks:
            found += self.results.rows(chunk.key or table.key, chunk)["id"].to_pylist()
        for entry in log:
            rows = self.results.rows(entry.chunk.key, entry.chunk)
            for op, number in zip(rows[OP].to_pylist(), rows["id"].to_pylist(), strict=True):
                if op == Op.TRUNCATE:
                    found = []
                else:
                    found.append(number)
        return found

    def judge(self, found: list[int], expected: set[int], gone: set[int], where: str) -> None:
        if len(found) != len(set(found)):
            self.faults.append(f"{where}: applied twice: {found}")
        if missing := expected.difference(found):
            self.faults.append(f"{where}: acknowledged and not read: {missing}")
        if back := gone.intersection(found):
            self.faults.append(f"{where}: truncated and read again: {back}")


class Readers:
    """The rows that statements of one process read; they stay during a reload."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.table: StoredTable | None = None
        self.has_shown = asyncio.Event()
        self.logs: dict[str, Log] = {}
        self.seen: set[int] = set()
        """Rows that were read or acknowledged here, and must be visible here from then on."""
        self.gone: set[int] = set()
        """Truncated rows, as this scheduler knows them; they must never be visible here again."""
        self._ever: set[int] = set()
        self.have_died = False
        self.made = 0
        """How often rows were stored for a version that was read."""
        self.steps = 1
        """The time that storing them takes."""

    place = PLACE
    cores = 4

    async def load(self, name: TableName, table: StoredTable, log: Log = ()) -> int | None:
        await self.world.loop.step()
        return None

    def follow(self, table: StoredTable, log: Log) -> None:
        self.logs[table.key] = log
        self.check()

    async def show(self, _name: TableName, table: StoredTable) -> None:
        await self.world.loop.step()
        self.table = table
        self.has_shown.set()
        self.check()

    async def number(self, sql: str) -> int | None:
        await self.world.loop.step()
        return 1

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
        """Store the rows that the statement reads when it is planned."""
        for _ in range(self.steps):
            await self.world.loop.step()
        if "caraway_source" in sql:
            rows = list(self.world.source)
        else:
            self.made += 1
            assert self.table is not None
            log = logs.get(self.table.key, self.logs.get(self.table.key, ()))
            rows = self.world.rows(self.table, log)
        batch = pa.record_batch({"id": rows}, schema=SCHEMA)
        key = making.key_of(name)
        return VersionPart(
            key, SCHEMA, (await self.world.results.write_chunk(key, 0, SCHEMA, [batch]),)
        )

    def read(self) -> list[int]:
        if self.table is None:
            return []
        return self.world.rows(self.table, self.logs.get(self.table.key, ()))

    def check(self) -> None:
        found = self.read()
        self.seen &= self.world.acknowledged
        self._ever.update(found)
        self.world.judge(found, self.seen, self.gone, "on one scheduler")
        self.seen |= self.world.acknowledged.intersection(found)
        # A TRUNCATE that another scheduler acknowledged may arrive here later.
        self.gone |= (self.world.gone & self._ever).difference(found)
