"""Times of workers over a real store: exactly one scheduler takes each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from caraway_assist.workers.times import WallClock, WorkerTurns
from caraway_plugins.stores.sqlite import SqliteStateStore

DUE = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@asynccontextmanager
async def schedulers(folder: Path, count: int = 2) -> AsyncIterator[list[WorkerTurns]]:
    stores = [SqliteStateStore(folder / "state.db", poll_s=0.01) for _ in range(count)]
    try:
        yield [WorkerTurns(store, f"s{number}/1") for number, store in enumerate(stores)]
    finally:
        for store in stores:
            await store.aclose()


async def takes(turns: WorkerTurns, due: datetime, worker: str = "w") -> bool:
    async with turns.taken(worker, due) as is_taken:
        return is_taken


async def test_one_of_several_schedulers_takes_a_time(tmp_path: Path) -> None:
    async with schedulers(tmp_path, 4) as found:
        for minute in range(5):
            due = DUE + timedelta(minutes=minute)
            assert sum(await asyncio.gather(*(takes(each, due) for each in found))) == 1


@pytest.mark.parametrize(
    ("later", "is_taken"),
    [
        (timedelta(0), False),
        (timedelta(seconds=59), False),
        (timedelta(minutes=1), True),
        (timedelta(minutes=-1), False),
        (timedelta(days=-400), False),
        (timedelta(days=400), True),
    ],
)
async def test_a_time_that_was_taken_and_those_before_it_are_gone(
    tmp_path: Path, later: timedelta, is_taken: bool
) -> None:
    async with schedulers(tmp_path) as (one, other):
        assert await takes(one, DUE)
        assert await takes(other, DUE + later) is is_taken


async def test_a_time_is_the_same_in_each_zone(tmp_path: Path) -> None:
    async with schedulers(tmp_path) as (one, other):
        assert await takes(one, DUE)
        assert not await takes(other, DUE.astimezone(timezone(timedelta(hours=9))))
        assert await takes(other, (DUE + timedelta(minutes=1)).astimezone(timezone.max))


async def test_a_worker_that_still_runs_is_not_run_again(tmp_path: Path) -> None:
    async with schedulers(tmp_path) as (one, other):
        async with one.taken("w", DUE) as is_taken:
            assert is_taken
            assert not await takes(other, DUE + timedelta(minutes=1))
            # Another worker has nothing to do with it.
            assert await takes(other, DUE, "w2")
        assert await takes(other, DUE + timedelta(minutes=2))


@pytest.mark.parametrize("end", [ValueError, asyncio.CancelledError])
async def test_a_run_that_fails_frees_the_worker_and_is_not_done_again(
    tmp_path: Path, end: type[BaseException]
) -> None:
    async with schedulers(tmp_path) as (one, other):
        with pytest.raises(end):
            async with one.taken("w", DUE) as is_taken:
                assert is_taken
                raise end
        assert not await takes(other, DUE)
        assert await takes(other, DUE + timedelta(minutes=1))


async def test_names_of_workers_stay_apart(tmp_path: Path) -> None:
    async with schedulers(tmp_path) as (one, _):
        for name in ("a", "a/b", "A", "ä", "a b", "a%"):
            assert await takes(one, DUE, name)


async def test_the_clock_of_the_machine_is_in_utc_and_does_not_wait_for_the_past() -> None:
    clock = WallClock()
    assert clock.now().tzinfo is UTC
    async with asyncio.timeout(60):
        await clock.until(clock.now() - timedelta(days=1))
        await clock.until(clock.now() + timedelta(milliseconds=5))
