"""Chunks that long statements read stay until they end, and are deleted afterwards."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

from caraway_acceleration.upkeep import compaction, logs
from caraway_acceleration.versions import reads
from caraway_acceleration.versions.reads import KEPT, Reads, keys_of
from caraway_core.changes import LogEntry
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.statements import ActiveStatement
from caraway_core.tables import ResultPlace, StoredTable, TableSpec, ViewTable
from tests.kit.interleaving import SteppedLoop, SteppedResults, SteppedStore, run
from tests.kit.member_worlds import World
from tests.kit.members import Member

KEPT_S = KEPT.total_seconds()
SCHEMA = pa.schema([("id", pa.int64())])
PLACE = ResultPlace("file", "/data")


def within(work: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a test in virtual time."""

    async def begun(loop: SteppedLoop) -> None:
        world = World(loop, SteppedStore(loop), SteppedResults(loop))
        await work(world)
        assert not world.faults

    run(begun, lambda _: 0, steps_take_time=False)


def stored(key: str, *parts: str) -> StoredTable:
    chunks = [ChunkInfo(0, 1, 1, part or key, key=part) for part in (*parts, "")]
    return StoredTable(SCHEMA, PLACE, key, tuple(chunks))


def under_way(sql: str, tables: dict[str, TableSpec], **logged: str) -> ActiveStatement:
    named = {TableName(name): table for name, table in tables.items()}
    entries = {base: (LogEntry(ChunkInfo(0, 1, 1, key, key=key)),) for base, key in logged.items()}
    return ActiveStatement(sql, (named,), entries, 0)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders", ["earlier", "o1", "log"]),
        ('SELECT * FROM "Orders" o', ["earlier", "o1", "log"]),
        ("SELECT * FROM open_orders", ["earlier", "o1", "log"]),
        ("SELECT * FROM outer_view JOIN people USING (id)", ["earlier", "o1", "log", "p1"]),
        ("SELECT 1", []),
    ],
)
def test_the_keys_of_a_statement_are_those_of_the_datasets_that_it_may_read(
    sql: str, expected: list[str]
) -> None:
    tables: dict[str, TableSpec] = {
        "orders": stored("o1", "earlier"),
        "people": stored("p1"),
        "open_orders": ViewTable("SELECT * FROM orders"),
        "outer_view": ViewTable("SELECT * FROM open_orders"),
    }
    assert keys_of([under_way(sql, tables, o1="log")]) == expected


def test_a_statement_between_two_catalogs_may_read_either() -> None:
    first, second = (under_way("SELECT * FROM t", {"t": stored(key)}) for key in ("a", "b"))
    both = ActiveStatement(first.sql, (*first.catalogs, *second.catalogs), {}, 0)
    assert keys_of([both]) == ["a", "b"]


def test_what_is_read_is_known_to_others_until_it_is_not_or_the_scheduler_has_died() -> None:
    async def work(world: World) -> None:
        one, two = Reads(world.store, "one/1"), Reads(world.store, "two/1")
        await one.write(["a", "b"])
        await two.write(["c"])
        assert await one.keys() == await two.keys() == {"a", "b", "c"}
        for _ in range(4):
            await asyncio.sleep(KEPT_S / 2)
            await one.write(["b"])
        assert await two.keys() == {"b"}
        await one.write([])
        assert await two.keys() == set()

    within(work)


def test_a_report_that_was_lost_or_expired_is_repeated() -> None:
    async def work(world: World) -> None:
        reader = Reads(world.store, "one/1")
        await reader.write(["a"])
        await asyncio.sleep(KEPT_S + 1)
        assert await reader.keys() == set()
        await reader.write(["b"])
        # Another process of this owner may have written it, if the answer to a write was lost.
        await Reads(world.store, "one/1").write(["c"])
        await reader.write(["d"])
        assert await reader.keys() == {"d"}
        await reader.write([])
        await reader.write([])
        assert await reader.keys() == set()

    within(work)


def test_the_number_of_reported_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MOST_KEYS", 2)

    async def work(world: World) -> None:
        reader = Reads(world.store, "one/1")
        await reader.write(["a", "b", "c"])
        assert await reader.keys() == {"a", "b"}

    within(work)


@pytest.mark.parametrize("dies", [False, True])
def test_chunks_stay_until_a_statement_of_another_scheduler_ends(
    monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 6)

    async def work(world: World) -> None:
        one, two = (Member(world, name, []).begin() for name in ("one", "two"))

        async def minutes(count: int) -> None:
            for _ in range(count * 6):
                await one.insert()
                await asyncio.sleep(10)

        await minutes(1)
        await two.settle()
        reading = asyncio.create_task(two.long_statement(3600))
        await minutes(20)
        assert two.readers.table is not None
        first = keys_of(two.statements)
        assert set(first) <= world.results.chunks.keys()
        held = one.current.held
        assert held is not None
        listed = {each.key for each in held.version.superseded}
        assert set(first) <= listed | held.version.keys
        # Unread chunks are deleted meanwhile: only those of the last few minutes are left.
        assert len(listed) < 60
        if dies:
            await two.end()
        else:
            reading.cancel()
            await asyncio.wait((reading,))
        await minutes(8)
        assert not world.results.chunks.keys() & set(first)
        reading.cancel()
        await asyncio.wait((reading,))

    within(work)
