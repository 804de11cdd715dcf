"""Workers on a cron, with a clock that only tests advance."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from caraway_assist.workers.running import WorkerRuns
from caraway_assist.workers.service import WorkerService
from caraway_assist.workers.times import WorkerTurns
from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.manifest import Manifest
from caraway_core.manifest.values.workers import DeclaredWorker
from caraway_core.protocols.state import StateStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit.clocks import VirtualTimes
from tests.kit.deadlines import eventually

START = datetime(2026, 11, 23, 12, 0, 30, tzinfo=UTC)
HOURLY = DeclaredWorker("tidy", "sql", sql="DELETE FROM t", cron="0 * * * *")


def hour(number: int) -> datetime:
    return datetime(2026, 11, 23, number, tzinfo=UTC)


@dataclass
class Runs:
    """Remembers what runs; a run lasts until `gate` is set."""

    done: list[tuple[str, datetime]] = field(default_factory=list)
    begun: list[datetime] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    are_refused: bool = False

    async def run_worker(self, worker: DeclaredWorker, due: datetime) -> None:
        self.begun.append(due)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.done.append((worker.sql or "", due))


@dataclass
class One:
    """A scheduler's workers."""

    workers: WorkerService
    runs: Runs
    times: VirtualTimes

    def apply(self, *declared: DeclaredWorker) -> None:
        self.workers.apply(cast(Manifest, SimpleNamespace(workers=declared)))

    async def waits_for(self, moment: datetime) -> None:
        async def look() -> bool:
            return moment in self.times.awaited

        await eventually(look, f"waits for {moment}")

    async def has_done(self, *dues: datetime) -> None:
        async def look() -> bool:
            return [due for _, due in self.runs.done] == list(dues)

        await eventually(look, f"done {dues}")


def one(store: StateStore, owner: str) -> One:
    runs, times = Runs(), VirtualTimes(START)
    runs.gate.set()
    workers = WorkerService(cast(WorkerRuns, runs), WorkerTurns(store, owner))
    workers.times = times
    return One(workers, runs, times)


@asynccontextmanager
async def schedulers(folder: Path, *names: str) -> AsyncIterator[list[One]]:
    async with AsyncExitStack() as stack:
        store = SqliteStateStore(folder / "state.db", poll_s=0.02)
        stack.push_async_callback(store.aclose)
        made = [one(store, f"{name}/1") for name in names]
        for each in made:
            stack.push_async_callback(each.workers.aclose)
        yield made


async def test_a_worker_runs_at_its_times(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        alone.apply(HOURLY)
        for number in (13, 14):
            await alone.waits_for(hour(number))
            assert alone.times.awaited == [hour(number)]
            alone.times.advance(hour(number))
        await alone.has_done(hour(13), hour(14))


async def test_times_that_pass_during_a_run_are_left_out(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        alone.runs.gate.clear()
        alone.apply(HOURLY)
        await alone.waits_for(hour(13))
        alone.times.advance(hour(13))
        await eventually(lambda: _true(alone.runs.begun), "begun")
        alone.times.advance(hour(16) + timedelta(minutes=1))
        alone.runs.gate.set()
        await alone.waits_for(hour(17))
        await alone.has_done(hour(13))


async def test_one_scheduler_of_a_cluster_takes_each_time(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a", "b", "c") as cluster:
        for each in cluster:
            each.apply(HOURLY)
        for number in (13, 14, 15):
            for each in cluster:
                await each.waits_for(hour(number))
            for each in cluster:
                each.times.advance(hour(number))
        for each in cluster:
            await each.waits_for(hour(16))
        done = sorted(due for each in cluster for _, due in each.runs.done)
        assert done == [hour(13), hour(14), hour(15)]


async def test_a_scheduler_that_is_late_does_not_repeat_a_run(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a", "b") as (early, late):
        early.apply(HOURLY)
        late.apply(HOURLY)
        await early.waits_for(hour(13))
        early.times.advance(hour(13))
        await early.has_done(hour(13))
        await late.waits_for(hour(13))
        late.times.advance(hour(13) + timedelta(minutes=9))
        await late.waits_for(hour(14))
        assert late.runs.begun == []


async def test_no_scheduler_begins_while_another_one_runs_it(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a", "b") as (slow, other):
        slow.runs.gate.clear()
        slow.apply(HOURLY)
        await slow.waits_for(hour(13))
        slow.times.advance(hour(13))
        await eventually(lambda: _true(slow.runs.begun), "begun")
        other.apply(HOURLY)
        other.times.advance(hour(13))
        await other.waits_for(hour(14))
        other.times.advance(hour(14))
        await other.waits_for(hour(15))
        assert other.runs.begun == []
        slow.runs.gate.set()
        await slow.has_done(hour(13))


async def test_failures_end_no_worker(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        alone.apply(HOURLY)
        for number, error in ((13, CarawayError("no such table")), (14, ValueError("a bug"))):
            alone.runs.error = error
            await alone.waits_for(hour(number))
            alone.times.advance(hour(number))
        await alone.waits_for(hour(15))
        alone.runs.error = None
        alone.times.advance(hour(15))
        await alone.has_done(hour(15))


async def test_a_store_that_is_away_delays_a_run(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        turns: Any = alone.workers._turns
        take, away = turns._take, [StateAwayError("the store is away")]

        async def once_away(worker: str, due: datetime) -> bool:
            if away:
                raise away.pop()
            taken: bool = await take(worker, due)
            return taken

        turns._take = once_away
        alone.apply(HOURLY)
        await alone.waits_for(hour(13))
        alone.times.advance(hour(13))
        await alone.has_done(hour(13))


async def test_a_changed_manifest_is_followed(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        alone.runs.gate.clear()
        alone.apply(HOURLY)
        await alone.waits_for(hour(13))
        alone.times.advance(hour(13))
        await eventually(lambda: _true(alone.runs.begun), "begun")
        changed = DeclaredWorker("tidy", "sql", sql="DELETE FROM u", cron="30 * * * *")
        alone.apply(changed)
        await alone.waits_for(hour(13) + timedelta(minutes=30))
        # The run of the worker as it was may end, and is its last.
        alone.runs.gate.set()
        await alone.has_done(hour(13))
        alone.times.advance(hour(14))
        await alone.waits_for(hour(14) + timedelta(minutes=30))
        assert [sql for sql, _ in alone.runs.done] == ["DELETE FROM t", "DELETE FROM u"]
        alone.apply()
        alone.times.advance(hour(15))
        await asyncio.sleep(0)
        assert len(alone.runs.begun) == 2


async def test_nothing_begins_while_the_process_stops(tmp_path: Path) -> None:
    async with schedulers(tmp_path, "a") as (alone,):
        alone.apply(HOURLY)
        await alone.waits_for(hour(13))
        alone.runs.are_refused = True
        alone.times.advance(hour(13))
        await alone.waits_for(hour(14))
        assert alone.runs.begun == []


async def _true(value: object) -> bool:
    return bool(value)
