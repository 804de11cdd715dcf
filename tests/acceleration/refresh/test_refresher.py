"""Refreshers of one dataset in two schedulers, over one state store and one result store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.refresh.refreshing import RefreshState
from caraway_acceleration.refresh.reloading import LoadPlan
from caraway_acceleration.versions.current_version import CurrentVersion, Subject
from caraway_acceleration.versions.making import StoredSize, VersionMaker
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.errors import ExecutionError, OutOfMemoryQueryError, StateAwayError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_plugins.stores.folder import FolderResultStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.coordination.claims import CLAIM_TTL_S
from caraway_scheduler.coordination.schedule import Timetable
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.clocks import Clock
from tests.kit.dataset_sources import GivenSources
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.job_schedulers import GatedDispatch, MortalStore

NAME = TableName("orders")
SCHEMA = pa.schema([("id", pa.int64())])


@dataclass
class Kept:
    """One scheduler's refresher, and the versions that its readers saw."""

    refresher: Refresher
    dispatch: GatedDispatch
    store: MortalStore
    working: "asyncio.Task[None]"
    shown: list[StoredTable] = field(default_factory=list)
    told: list[RefreshState] = field(default_factory=list)

    async def at(self, number: int) -> None:
        async def look() -> bool:
            version = self.refresher.version
            return version is not None and version.number >= number

        await eventually(look, f"version {number} is shown")

    async def is_well(self) -> None:
        async def look() -> bool:
            return not self.refresher.state.error

        await eventually(look, "the failure is over")

    async def fails(self) -> str:
        async def look() -> str:
            return self.refresher.state.error

        return await eventually(look, "the refresh has failed")

    def ask(self) -> None:
        self.refresher.ask(events.RefreshAsked())


class Site:
    """The stores that the schedulers share."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.clock = Clock(1_000_000.0)
        self.store = SqliteStateStore(folder / "state.db", self.clock, poll_s=0.02)
        self.place = ResultPlace("file", str(folder / "datasets"))
        self.parent = "loaded"
        self._stack = stack
        stack.push_async_callback(self.store.aclose)

    async def agree(self, one: Kept, two: Kept, number: int) -> None:
        async def look() -> bool:
            version = one.refresher.version
            assert version is not None
            return version.number >= number and one.shown[-1].key == two.shown[-1].key

        await eventually(look, f"both show the same version, {number} or later")

    def forget_the_dead(self) -> None:
        self.clock.now += 2 * CLAIM_TTL_S

    async def keep(
        self,
        scheduler: str,
        rows: int = 10,
        attempts: int | None = 0,
        ahead: timedelta = timedelta(),
        parents: "Site | None" = None,
    ) -> Kept:
        dispatch = GatedDispatch(
            InProcessDispatch(LocalExecutor(EngineSettings(1, None)), ExecutorId(scheduler), 1)
        )
        self._stack.push_async_callback(dispatch.aclose)
        source = memory(id=pa.array(range(rows), pa.int64()))
        await dispatch.install(snapshot({"caraway_source.orders": source}))
        store = MortalStore(self.store)
        shown: list[StoredTable] = []
        told: list[RefreshState] = []

        async def show(_name: TableName, table: StoredTable) -> None:
            shown.append(table)

        def tell(_name: TableName, refreshes: RefreshState, _stored: StoredSize) -> None:
            told.append(refreshes)

        plan = LoadPlan(
            NAME,
            Timetable(),
            events.RefreshSettings(retries=Retries(attempts != 0, attempts)),
            Recipe(NAME),
            reopens=True,
        )

        def clock() -> datetime:
            return datetime.now(UTC) + ahead

        current = CurrentVersion(
            Subject(NAME, "origin"),
            VersionMaker(dispatch, self.place),
            VersionStore(store, scheduler),
            FolderResultStore.at(self.place),
            show,
            clock,
        )

        async def position() -> str | None:
            return parents.parent if parents is not None else None

        sources = GivenSources(SCHEMA)
        refresher = Refresher(plan, current, tell, sources, clock=clock)
        refresher.follow(position)
        working = asyncio.create_task(refresher.run())
        following = asyncio.create_task(_follow(VersionStore(store, scheduler), refresher))
        for task in (working, following):
            self._stack.push_async_callback(_end, task)
        refresher.source_loaded()
        return Kept(refresher, dispatch, store, working, shown, told)


async def _follow(versions: VersionStore, refresher: Refresher) -> None:
    async for _ in versions.watch():
        refresher.news()


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,), timeout=1)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        yield Site(folder, stack)


async def test_one_loads_and_all_show_the_same_version(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        two = await place.keep("two")
        await two.at(1)
        assert len(two.dispatch.executed) == 0
        two.ask()
        await two.at(2)
        await one.at(2)
        assert one.shown == two.shown
        assert [sum(c.row_count for c in table.chunks) for table in one.shown] == [10, 10]


async def test_one_scheduler_copies_what_all_are_told_to_copy(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one", parents=place)
        await one.at(1)
        two = await place.keep("two", parents=place)
        await two.at(1)
        before = len(one.dispatch.executed) + len(two.dispatch.executed)
        place.parent = "moved"
        for kept in (one, two):
            kept.refresher.parents_moved()
        await place.agree(one, two, 2)
        two.refresher.parents_moved()
        one.ask()
        await place.agree(one, two, 3)
        assert one.refresher.version is not None
        assert (one.refresher.version.number, one.refresher.version.position) == (3, "moved")
        # Two versions were made, although each heard of the move.
        assert len(one.dispatch.executed) + len(two.dispatch.executed) == 2 + before


async def test_concurrent_refreshes_take_turns(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one, two = await place.keep("one"), await place.keep("two", rows=20)
        for kept in (one, two):
            await kept.at(1)
        first = max(one.refresher.version.number, two.refresher.version.number)  # type: ignore[union-attr]
        one.ask()
        two.ask()
        # The second may have started its own first load before it saw the other's. Then there is
        # one more version.
        await place.agree(one, two, first + 2)
        assert one.shown[-1] == two.shown[-1]
        for kept in (one, two):
            assert [table.key for table in kept.shown] == list(
                dict.fromkeys(table.key for table in kept.shown)
            ), "no version is shown twice, and none again after a later one"


async def test_scheduler_that_dies_in_a_refresh_is_followed_by_another(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        two = await place.keep("two")
        one.dispatch.began.clear()
        one.dispatch.may_begin.clear()
        one.ask()
        await one.dispatch.began.wait()
        one.store.die()
        one.working.cancel()
        two.ask()
        place.forget_the_dead()
        await two.at(2)
        assert len(two.shown) == 2


async def test_failure_leaves_the_version(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        one.dispatch.fails = [ExecutionError("the source broke off")]
        one.ask()
        assert await one.fails() == "the source broke off"
        assert one.refresher.version is not None
        assert one.refresher.version.number == 1
        one.ask()
        await one.at(2)
        await one.is_well()


async def test_refresh_that_lost_its_claim_does_not_undo_a_later_one(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        two = await place.keep("two", rows=20)
        one.dispatch.began.clear()
        one.dispatch.may_begin.clear()
        one.ask()
        await one.dispatch.began.wait()
        place.forget_the_dead()
        two.ask()
        await two.at(2)
        await one.at(2)
        one.dispatch.may_begin.set()
        assert "another scheduler" in await one.fails()
        for kept in (one, two):
            assert [chunk.row_count for chunk in kept.shown[-1].chunks] == [20]
            assert len(kept.shown) == 2


async def test_failed_refresh_is_retried_automatically(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one", attempts=None)
        await one.at(1)
        one.dispatch.fails = [ExecutionError("once")]
        one.ask()
        await one.fails()
        await one.at(2)


async def test_store_that_is_away_delays_a_refresh(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one", attempts=None)
        await one.at(1)
        one.dispatch.began.clear()
        one.dispatch.may_begin.clear()
        one.ask()
        await one.dispatch.began.wait()
        one.store.away = StateAwayError("the store is away")
        one.dispatch.may_begin.set()
        await one.fails()
        assert one.refresher.version is not None
        assert one.refresher.version.number == 1
        one.store.away = None
        await one.at(2)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_the_flip_readers_have_one_version_or_the_other(
    tmp_path: Path, when: str
) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        one.store.counts = "accelerated/"
        one.store.writes.clear()
        one.store.dies_at = 1, when
        one.ask()
        await one.store.died.wait()
        one.working.cancel()
        place.forget_the_dead()
        two = await place.keep("two", ahead=timedelta(hours=7))
        await two.at(2 if when == "after" else 1)
        two.ask()
        await two.at(3 if when == "after" else 2)
        folder = Path(place.place.path)

        async def swept() -> bool:
            wanted = {table.key for table in (*one.shown, *two.shown)}
            return {each.name for each in folder.glob("d-*")} <= wanted

        await eventually(swept, "what the dead one stored for nothing is removed")


async def test_version_that_does_not_fit_is_not_shown(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.keep("one")
        await one.at(1)
        one.dispatch.fails_to_load = [OutOfMemoryQueryError("dataset 'orders' does not fit")]
        one.ask()
        assert await one.fails() == "dataset 'orders' does not fit"
        assert len(one.shown) == 1
        one.ask()
        await one.at(2)
