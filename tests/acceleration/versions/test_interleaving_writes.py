"""More publishers of versions, in every order: statements that change rows, starts from a snapshot,
and orphan collection.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.changes.ingesting import BaseWithLog
from caraway_acceleration.passthrough.through import SourceDispatch
from caraway_acceleration.sources import PassthroughSources
from caraway_acceleration.upkeep import compaction, logs, orphans
from caraway_acceleration.upkeep.orphans import OrphanCollector
from caraway_acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_core.changes import Changes
from caraway_core.errors import CarawayError
from caraway_core.ids import QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement, TableWrite
from caraway_core.statements.questions import WriteQuestion
from tests.acceleration.versions.interleaved_writes import SnapshotMaker, lived, snapshotting
from tests.acceleration.versions.interleavings import PHASES, SEEDS, play, settled
from tests.kit.interleaving import SteppedResults
from tests.kit.member_worlds import NAME, PLACE, SCHEMA, World
from tests.kit.members import Member
from tests.kit.stream_double import StreamDouble

FIRST = 10_000
"""Numbers of the rows that statements add: each is one more than the rows it has read."""
ADDING = f"INSERT INTO {NAME} SELECT {FIRST} + count(*) FROM {NAME} WHERE id >= {FIRST}"
_LOST = 0.03
_WHICH = st.integers(0, 1)


def deeds(*names: str) -> Any:
    return st.lists(st.tuples(st.sampled_from(names), _WHICH), min_size=6, max_size=20)


class Answer(StreamDouble):
    """A stream of one batch."""

    schema = SCHEMA
    reads_only_catalog = False
    written: TableName | None = None

    def __init__(self, number: int) -> None:
        self._batches = [pa.record_batch({"id": [number]}, schema=SCHEMA)]

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if not self._batches:
            raise StopAsyncIteration
        return self._batches.pop()

    async def aclose(self) -> None:
        pass


class Adding:
    """A statement that adds a row; implements both a dispatch and `Accelerations`."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.number = 0

    async def ask(self, question: WriteQuestion) -> TableWrite:
        assert isinstance(question, WriteQuestion)
        return TableWrite(NAME, "INSERT")

    async def execute(self, _query_id: QueryId, statement: Statement) -> BatchStream:
        world, readers = self._member.world, self._member.readers
        await world.loop.step()
        assert readers.table is not None
        log = {**readers.logs, **statement.logs}.get(readers.table.key, ())
        rows = world.rows(readers.table, log)
        await world.loop.step()
        self.number = FIRST + sum(each >= FIRST for each in rows)
        world.send(self.number)
        return Answer(self.number)

    def sources(self) -> PassthroughSources:
        return PassthroughSources(logged=frozenset({NAME}))

    def damaged(self, name: TableName) -> None:
        raise AssertionError(f"{name} is not damaged")

    async def caught_up(self, _sql: str) -> None:
        await self._member._freshness.reach(frozenset({NAME}))

    def changeable(self, _name: TableName) -> Changeable:
        version = self._member.current.shown
        if version is None:
            raise CarawayError("not loaded")
        return Changeable(NAME, SCHEMA, ("id",), "last", BaseWithLog(version.key, version.read_log))

    async def apply(
        self, _name: TableName, made: Changes, request_id: str | None, _deadline_s: float,
        *, upon: BaseWithLog | None = None,
    ) -> int:  # fmt: skip
        return await self._member.feed.apply(made, request_id, 1e6, None, upon)


async def add(member: Member) -> None:
    known: Any = Adding(member)
    dispatch = SourceDispatch(known, known)
    writable = frozenset({NAME})
    for _ in range(60):
        if member.current.shown is None:
            await asyncio.sleep(1)
    with suppress(CarawayError):
        await dispatch.execute(
            new_query_id(), Statement(ADDING, {}, may_write=True, writable=writable)
        )
        member._acknowledge(known.number)


async def worked(world: World, done: Sequence[tuple[str, int]], members: list[Member]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for deed, which in done:
            member = members[which]
            match deed:
                case "insert":
                    tasks.create_task(_insert(member))
                case "add":
                    tasks.create_task(add(member))
                case "read":
                    tasks.create_task(member.statement())
                case "reload" | "crash":
                    readers = member.readers if deed == "reload" else None
                    members[which] = await member.again(readers)
            await world.loop.step()


async def _insert(member: Member) -> None:
    await member.insert()


async def added(world: World, done: Sequence[tuple[str, int]]) -> None:
    members = [Member(world, name, []).begin() for name in ("one", "two")]
    await worked(world, done, members)
    await settled(world, members)
    found = sorted(each for each in members[0].readers.read() if each >= FIRST)
    assert found == list(range(FIRST, FIRST + len(found)))


async def restored(world: World, done: Sequence[tuple[str, int]]) -> None:
    """Start two schedulers when there is a snapshot but no version."""
    store = SteppedResults(world.loop)
    zero, first = await lived(world, 3)
    maker: Any = SnapshotMaker(zero.readers, store)
    await DatasetSnapshots(zero.current, maker, store).write()
    await zero.end()
    # A version that it was about to publish when it ended may exist by now.
    while (standing := await zero._versions.entry(NAME)) is not None:
        with suppress(CarawayError):
            await zero._versions.remove(NAME, standing.revision)
    world.acknowledged -= first
    members = [Member(world, name, []) for name in ("one", "two")]

    async def begin(member: Member) -> None:
        await snapshotting(member, store).start_from_snapshot()
        member.begin()

    async with asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(begin(member))
        for deed, which in done:
            if deed == "insert":
                tasks.create_task(_insert(members[which]))
            await world.loop.step()
    world.acknowledged |= first
    await settled(world, members)


async def abandoned(world: World, done: Sequence[tuple[str, int]], later: int) -> None:
    """Start a dataset again while another scheduler collects it as an orphan."""
    zero, first = await lived(world, 3)
    await zero.end()
    world.acknowledged -= first
    now_s, other = world.loop.time, Member(world, "two", [])
    remover = OrphanCollector(other._versions, world.results, PLACE.title, world.clock, now_s)

    async def remove() -> None:
        # Its answer may be lost; then the collector is called again, as in its loop.
        with suppress(CarawayError):
            await remover.look([])

    async def remove_again() -> None:
        for _ in range(3):
            await remove()

    await remove()
    await asyncio.sleep(orphans.GONE_AFTER.total_seconds() + 60)
    await remove()
    await asyncio.sleep(orphans.WATCHED_S + 60)
    one = Member(world, "one", [])

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(remove_again())
        for _ in range(later):
            await world.loop.step()
        one.begin()
        for deed, _ in done:
            if deed == "insert":
                tasks.create_task(_insert(one))
            await world.loop.step()
    await settled(world, [one])
    assert first.intersection(one.readers.read()) in (first, set())


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 6)


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(seed=SEEDS, done=deeds("add", "add", "add", "insert", "read", "reload", "crash"))
def test_statements_that_change_rows_build_on_what_they_read(
    seed: int, done: list[tuple[str, int]]
) -> None:
    play(seed, lambda world: added(world, done), _LOST)


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(seed=SEEDS, done=deeds("insert", "wait"))
def test_a_start_from_a_snapshot_loses_neither_its_rows_nor_changes(
    seed: int, done: list[tuple[str, int]]
) -> None:
    play(seed, lambda world: restored(world, done), _LOST)


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(seed=SEEDS, done=deeds("insert", "wait"), later=st.integers(0, 40))
def test_nothing_of_a_restarted_dataset_is_collected(
    seed: int, done: list[tuple[str, int]], later: int
) -> None:
    play(seed, lambda world: abandoned(world, done, later), _LOST)


@pytest.mark.full
@pytest.mark.timeout(900)
@settings(max_examples=300, deadline=None, phases=PHASES)
@given(
    seed=SEEDS,
    done=deeds("add", "add", "insert", "read", "reload", "crash"),
    later=st.integers(0, 40),
)
def test_of_hundreds_of_orders_none_loses_a_statement_or_a_start(
    seed: int, done: list[tuple[str, int]], later: int
) -> None:
    play(seed, lambda world: added(world, done), _LOST)
    play(seed, lambda world: restored(world, done), _LOST)
    play(seed, lambda world: abandoned(world, done, later), _LOST)
