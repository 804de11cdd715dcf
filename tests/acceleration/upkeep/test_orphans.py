"""Orphan collection: unused datasets are removed after a long time, used ones never."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_acceleration.upkeep import orphans
from caraway_acceleration.upkeep.orphans import GONE_AFTER, WATCHED_S, OrphanCollector
from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_acceleration.versions.versions import HeldVersion, Successor, VersionStore
from caraway_core.errors import StateAwayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_plugins.stores.folder import FolderResultStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit.turns import turn

NAME, OTHER = TableName("orders"), TableName("orders.x")
SCHEMA = pa.schema([("id", pa.int64())])
BATCH = pa.record_batch([[1, 2]], schema=SCHEMA)
START = datetime.now(UTC)
HERE = "here"
Step = Callable[[], Awaitable[object]]


class Stepped:
    """A state store that runs an action before one of its calls."""

    def __init__(self, inner: StateStore) -> None:
        self._inner = inner
        self.calls = 0
        self.before: tuple[int, Step] | None = None

    async def _step(self) -> None:
        self.calls += 1
        if self.before is not None and self.before[0] == self.calls:
            await self.before[1]()

    async def get(self, key: str) -> StateEntry | None:
        await self._step()
        return await self._inner.get(key)

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        await self._step()
        return await self._inner.scan(prefix)

    async def compare_and_set(self, *args: Any, **options: Any) -> int | None:
        await self._step()
        return await self._inner.compare_and_set(*args, **options)


@dataclass
class Site:
    store: SqliteStateStore
    results: FolderResultStore
    now: datetime = START
    now_s: float = 0.0
    seen: list[OrphanCollector] = field(default_factory=list)

    def clock(self) -> datetime:
        return self.now

    def pass_(self, time: timedelta) -> None:
        self.now += time
        self.now_s += time.total_seconds()

    def versions(self, store: Any = None, ahead: timedelta = timedelta()) -> VersionStore:
        return VersionStore(store or self.store, "one", lambda: self.now + ahead)

    def unkept(self, store: Any = None, ahead: timedelta = timedelta()) -> OrphanCollector:
        return OrphanCollector(
            self.versions(store, ahead),
            self.results,
            HERE,
            lambda: self.now + ahead,
            lambda: self.now_s,
            every_s=0,
        )

    async def make(self, name: TableName, location: str = HERE) -> None:
        versions = self.versions()
        held = await versions.current(name)
        key = making.key_of(name)
        chunk = await self.results.write_chunk(key, 0, SCHEMA, [BATCH])
        part = VersionPart(key, SCHEMA, (chunk,))
        version = DatasetVersion(1, (part,), location, START, "", "o")
        assert await versions.flip(name, Successor(held, version))

    async def is_whole(self, held: HeldVersion) -> None:
        """Check that everything exists that a reader of this version needs."""
        standing = await self.versions().current(NAME)
        assert standing is not None and standing.version == held.version
        for part in held.version.parts:
            for chunk in part.chunks:
                assert [each async for each in self.results.read_chunk(part.key, chunk)] == [BATCH]

    async def left(self) -> list[str]:
        state = [entry.key for entry in await self.store.scan("")]
        return sorted([*state, *await self.results.keys()])


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    store = SqliteStateStore(folder / "state.db", poll_s=0.02)
    try:
        yield Site(store, FolderResultStore(folder / "datasets"))
    finally:
        await store.aclose()


async def watch(place: Site, sweeper: OrphanCollector, kept: Sequence[TableName] = ()) -> None:
    """Let the required time pass, with checks in between."""
    await sweeper.look(kept)
    place.pass_(GONE_AFTER)
    await sweeper.look(kept)
    place.pass_(timedelta(seconds=WATCHED_S))
    await sweeper.look(kept)


async def test_an_unused_dataset_is_removed_after_a_long_time(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        sweeper = place.unkept()
        await place.make(OTHER)
        await sweeper.look([OTHER])
        others = await place.left()
        await place.make(NAME)
        everything = await place.left()
        assert len(everything) == 2 * len(others)

        await sweeper.look([OTHER])
        place.pass_(GONE_AFTER)
        await sweeper.look([OTHER])
        assert await place.left() == everything
        place.pass_(timedelta(seconds=1))
        await sweeper.look([OTHER])
        assert await place.left() == others


async def test_a_dataset_of_another_scheduler_stays(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        sweeper, keeper = place.unkept(ahead=2 * GONE_AFTER), place.versions()
        await place.make(NAME)
        held = await keeper.current(NAME)
        assert held is not None
        for _ in range(10):
            await sweeper.look(())
            # One clock is far ahead, but its scheduler still sees that the mark is renewed.
            place.pass_(timedelta(seconds=WATCHED_S / 2))
            await keeper.marks.renew(NAME)
        await place.is_whole(held)


async def test_a_new_process_removes_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        await place.make(NAME)
        place.pass_(2 * GONE_AFTER)
        everything = await place.left()
        await place.unkept().look(())
        place.pass_(timedelta(seconds=WATCHED_S - 1))
        await place.unkept().look(())
        assert await place.left() == everything


async def test_versions_without_a_mark_count_from_now_on(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        await place.make(NAME)
        marks = place.versions().marks
        mark = await marks.read(NAME)
        assert mark is not None and await marks.remove(NAME, mark)
        sweeper = place.unkept()
        place.pass_(2 * GONE_AFTER)
        await sweeper.look(())
        mark = await marks.read(NAME)
        assert mark is not None and mark.at == place.now
        assert await place.versions().entry(NAME) is not None
        await watch(place, sweeper)
        place.pass_(timedelta(seconds=1))
        await sweeper.look(())
        assert await place.left() == []


async def test_versions_of_another_location_stay(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        await place.make(NAME, "elsewhere")
        everything = await place.left()
        await watch(place, place.unkept())
        assert await place.left() == everything


async def steps(place: Site) -> int:
    """Count the calls of a check that removes something."""
    await place.make(NAME)
    store = Stepped(place.store)
    sweeper = place.unkept(store)
    await sweeper.look(())
    place.pass_(GONE_AFTER + timedelta(seconds=1))
    before = store.calls
    await sweeper.look(())
    assert await place.left() == []
    return store.calls - before


async def test_a_returning_scheduler_finds_all_rows_or_none(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        kept = set()
        for step in range(1, await steps(place) + 1):
            await place.make(NAME)
            store = Stepped(place.store)
            sweeper, keeper = place.unkept(store), place.versions()
            await sweeper.look(())
            place.pass_(GONE_AFTER + timedelta(seconds=1))
            found: list[HeldVersion | None] = []

            async def come_back(
                keeper: VersionStore = keeper, found: list[HeldVersion | None] = found
            ) -> None:
                found.append(await keeper.current(NAME))

            store.before = store.calls + step, come_back
            await sweeper.look(())
            [held] = found
            kept.add(held is not None)
            if held is not None:
                await place.is_whole(held)
            await place.versions().marks.renew(NAME)
        assert kept == {True, False}


async def test_nothing_of_a_returning_scheduler_is_removed(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        for step in range(1, 6):
            await place.make(NAME)
            sweeper, store = place.unkept(), Stepped(place.store)
            await sweeper.look(())
            place.pass_(GONE_AFTER + timedelta(seconds=1))

            async def sweep(sweeper: OrphanCollector = sweeper) -> None:
                await sweeper.look(())

            store.before = step, sweep
            held = await place.versions(store).current(NAME)
            if held is not None:
                await place.is_whole(held)


async def test_a_later_check_removes_what_a_crash_left(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        for step in range(1, await steps(place) + 1):
            await place.make(NAME)
            store = Stepped(place.store)
            sweeper = place.unkept(store)
            await sweeper.look(())
            place.pass_(GONE_AFTER + timedelta(seconds=1))

            async def fail() -> None:
                raise StateAwayError("away")

            store.before = store.calls + step, fail
            with pytest.raises(StateAwayError):
                await sweeper.look(())
            await watch(place, place.unkept())
            assert await place.left() == []


async def test_rows_that_are_stored_during_a_removal_stay(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        await place.make(NAME)
        sweeper = place.unkept()
        await sweeper.look(())
        place.pass_(GONE_AFTER + timedelta(seconds=1))
        stamp = f"{int(place.now.timestamp()):x}"
        key = f"{making.prefix_of(NAME)}{stamp}-abc"
        await place.results.write_chunk(key, 0, SCHEMA, [BATCH])
        await sweeper.look(())
        assert await place.left() == [key]


async def test_used_datasets_are_marked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(tmp_path) as place:
        for name in (NAME, OTHER):
            await place.make(name)
        marks = place.versions().marks
        key = "accelerated-kept/damaged"
        await place.store.compare_and_set(key, b"no time", expected=None)
        place.pass_(2 * orphans._WARN_AFTER)
        sweeper = place.unkept()
        running = asyncio.create_task(sweeper.run(lambda: [TableName("damaged"), NAME]))
        async with asyncio.timeout(60):
            while "will be removed" not in caplog.text:
                await turn()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        mine, other = await marks.read(NAME), await marks.read(OTHER)
        assert mine is not None and mine.at == place.now
        assert other is not None and other.at == START
        [warning] = [each for each in caplog.records if "will be removed" in each.message]
        assert warning.dataset == OTHER  # type: ignore[attr-defined]
