"""The replica over a real store with outages, and over a scripted store."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.ids import JobId, PrincipalId
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_plugins.stores.watching import ChangePage, StateWatcher
from caraway_scheduler.jobs import codec, states
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica
from tests.kit.turns import turn
from tests.scheduler.jobs import making
from tests.scheduler.jobs.conftest import POLL_S, Opening

LONG_S = 30.0
SHORT_S = 0.01
A, B = JobId("A"), JobId("B")


def is_running(job: Job | None) -> bool:
    return job is not None and job.status == "RUNNING"


def is_there(job: Job | None) -> bool:
    return job is not None


def is_gone(job: Job | None) -> bool:
    return job is None


async def current(replica: Replica) -> None:
    async with asyncio.timeout(LONG_S):
        while not replica.is_current:
            await turn()


@asynccontextmanager
async def following(replica: Replica) -> AsyncIterator[Replica]:
    """Yield a replica that has read everything."""
    task = asyncio.create_task(replica.follow_jobs())
    try:
        await current(replica)
        yield replica
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def begin(records: JobRecords, held: StoredJob) -> StoredJob:
    changed = await records.replace(held, states.began(held.job, making.START, writes=False))
    assert changed is not None
    return changed


async def test_it_holds_existing_and_new_jobs(opened: Opening) -> None:
    async with opened() as store, opened() as other:
        elsewhere = JobRecords(other)
        first = await elsewhere.create(making.job("A"))
        async with following(Replica(store)) as replica:
            assert replica.under_way() == [first]
            second = await elsewhere.create(making.job("B", "key-1"))
            await replica.wait_for(B, is_there, LONG_S)
            assert replica.get(B) == second
            first = await begin(elsewhere, first)
            await replica.wait_for(A, is_running, LONG_S)
            assert replica.get(A) == first
            assert replica.counts == {"PENDING": 1, "RUNNING": 1}
            assert await elsewhere.delete(first)
            await replica.wait_for(A, is_gone, LONG_S)
            assert replica.under_way() == [second]
            assert replica.counts == {"PENDING": 1}
        assert not replica.is_current


async def test_it_ends_with_the_store(opened: Opening) -> None:
    async with opened() as store:
        replica = Replica(store)
        task = asyncio.create_task(replica.follow_jobs())
        await current(replica)
    await asyncio.wait_for(task, LONG_S)
    assert not replica.is_current


async def test_waiting_ends_with_the_time(opened: Opening) -> None:
    async with opened() as store:
        held = await JobRecords(store).create(making.job("A"))
        async with following(Replica(store)) as replica:
            await replica.wait_for(A, is_running, SHORT_S)
            await replica.wait_for(A, is_running, 0)
            assert replica.get(A) == held
            assert replica._waiters == {}


async def test_a_condition_that_holds_is_not_waited_for(opened: Opening) -> None:
    async with opened() as store:
        await JobRecords(store).create(making.job("A"))
        async with following(Replica(store)) as replica:
            await replica.wait_for(A, is_there, LONG_S)
            await replica.wait_for(B, is_gone, LONG_S)


async def test_one_entry_wakes_exactly_the_waiters_of_its_job(tmp_path: Path) -> None:
    replica = Replica(SqliteStateStore(tmp_path / "state.db"))
    asked: list[JobId] = []

    def asks(job_id: JobId) -> Callable[[Job | None], bool]:
        def condition(job: Job | None) -> bool:
            asked.append(job_id)
            return is_there(job)

        return condition

    def wait(job_id: JobId) -> asyncio.Task[None]:
        return asyncio.create_task(replica.wait_for(job_id, asks(job_id), LONG_S))

    of_a = [wait(A) for _ in range(1000)]
    of_b = [wait(B) for _ in range(1000)]
    await turn()
    asked.clear()
    replica.saw(StoredJob(making.job("A"), 1))
    await asyncio.gather(*of_a)
    assert asked == [A] * 1000
    for task in of_b:
        task.cancel()
    await asyncio.gather(*of_b, return_exceptions=True)
    assert replica._waiters == {}
    await replica._store.aclose()


async def test_own_writes_are_there_at_once_and_never_go_back(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        told: list[StoredJob] = []
        async with following(Replica(store)) as replica:
            replica.subscribe(told.append)
            pending = await records.create(making.job("A"))
            replica.saw(pending)
            assert replica.get(A) == pending
            running = await begin(records, pending)
            replica.saw(running)
            replica.saw(pending)
            assert replica.get(A) == running
            last = await records.create(making.job("B"))
            await replica.wait_for(B, is_there, LONG_S)
            assert told == [pending, running, last]


async def test_what_was_deleted_does_not_come_back(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        async with following(Replica(store)) as replica:
            held = await records.create(making.job("A"))
            replica.saw(held)
            await records.delete(held)
            await replica.wait_for(A, is_gone, LONG_S)
            replica.saw(held)
            assert replica.get(A) is None
            assert replica.counts == {}


async def test_an_entry_that_cannot_be_read_hides_no_other(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as store:
        newer = json.dumps({"format": 99}).encode()
        revision = await store.compare_and_set("jobs/public/A", newer, expected=None)
        held = await JobRecords(store).create(making.job("B"))
        async with following(Replica(store)) as replica:
            assert replica.under_way() == [held]
            assert replica.unreadable == {A}
            assert [record.message for record in caplog.records] == ["job cannot be read"]
            await store.compare_and_set("jobs/public/A", None, expected=revision)
            await JobRecords(store).create(making.job("C"))
            await replica.wait_for(JobId("C"), is_there, LONG_S)
            assert replica.unreadable == frozenset()


class FragileStore(SqliteStateStore):
    """Fails scans and watches on demand, and lets a test act between them."""

    is_away = False

    def __init__(self, path: Path) -> None:
        super().__init__(path, poll_s=POLL_S)
        self.more: list[StateEntry] = []
        self.during_scan: Callable[[], None] = lambda: None
        self.broken = asyncio.Event()
        self.watchers: list[StateWatcher] = []

    async def scan(self, prefix: str) -> list[StateEntry]:
        if self.is_away:
            raise StateAwayError("state store is away")
        found = [*await super().scan(prefix), *self.more]
        self.during_scan()
        return found

    def watch(self, prefix: str) -> StateWatcher:
        watcher = super().watch(prefix)
        self.watchers.append(watcher)
        return watcher

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        if self.broken.is_set():
            raise CarawayError("the watcher missed deletions; start a new watch, then scan")
        return await super().read_changes(prefix, after)

    def break_watches(self) -> None:
        self.broken.set()
        for watcher in self.watchers:
            watcher.wake()


class Pauses:
    """Replaces sleeping: each pause lasts until the test ends it."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.begun = asyncio.Event()
        self._ends = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.lengths.append(seconds)
        self.begun.set()
        await self._ends.wait()
        self._ends.clear()

    async def reached(self) -> None:
        async with asyncio.timeout(LONG_S):
            await self.begun.wait()

    def end(self) -> None:
        self.begun.clear()
        self._ends.set()


async def test_a_principal_has_its_jobs_newest_first(opened: Opening) -> None:
    async with opened() as store, opened() as other:
        records = JobRecords(other)
        for name, seconds in (("A", 2), ("B", 1), ("C", 3), ("D", 3)):
            created_at = making.START + timedelta(seconds=seconds)
            held = await records.create(making.job(name, "key-1", created_at=created_at))
        async with following(Replica(store)) as replica:
            await records.create(making.job("E", "key-11"))
            await records.create(making.job("F", "key-1/A"))
            await replica.catch_up()
            key = PrincipalId("key-1")
            assert [each.job.job_id for each in replica.jobs_of(key)] == ["D", "C", "A", "B"]
            await records.delete(held)
            await replica.catch_up()
            assert [each.job.job_id for each in replica.jobs_of(key)] == ["C", "A", "B"]
            assert [each.job.job_id for each in replica.jobs_of(PrincipalId("key-1/A"))] == ["F"]
            assert list(replica.jobs_of(PrincipalId("nobody"))) == []


async def test_it_does_not_catch_up_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, pauses = FragileStore(tmp_path / "state.db"), Pauses()
    async with following(Replica(store, pauses)) as replica:
        store.is_away = True
        store.break_watches()
        await pauses.reached()
        monkeypatch.setattr("caraway_scheduler.jobs.replica._CATCH_UP_S", SHORT_S)
        with pytest.raises(StateAwayError, match="still being read"):
            await replica.catch_up()
        store.is_away = False
        store.broken.clear()
        monkeypatch.undo()
        pauses.end()
        await replica.catch_up()
    await store.aclose()


async def test_after_a_failure_it_restarts_and_logs_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store, pauses = FragileStore(tmp_path / "state.db"), Pauses()
    records = JobRecords(store)
    kept, doomed = await records.create(making.job("A")), await records.create(making.job("B"))
    async with following(Replica(store, pauses)) as replica:
        waiting = asyncio.create_task(replica.wait_for(A, is_running, LONG_S))
        gone = asyncio.create_task(replica.wait_for(B, is_gone, LONG_S))
        await turn()
        store.is_away = True
        store.break_watches()
        for _ in range(8):
            await pauses.reached()
            assert not replica.is_current
            pauses.end()
        await pauses.reached()
        assert replica.get(A) == kept
        kept = await begin(records, kept)
        await records.delete(doomed)
        store.is_away = False
        store.broken.clear()
        pauses.end()
        await current(replica)
        await asyncio.gather(waiting, gone)
        assert replica.under_way() == [kept]
        assert replica.counts == {"RUNNING": 1}
    assert pauses.lengths == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert [record.message for record in caplog.records] == [
        "job replica lost the state store",
        "job replica is current again",
    ]
    await store.aclose()


async def test_an_own_write_that_the_scan_missed_stays(tmp_path: Path) -> None:
    store = FragileStore(tmp_path / "state.db")
    records = JobRecords(store)
    await records.create(making.job("A"))
    replica = Replica(store)
    written = StoredJob(making.job("B"), 1_000)
    # As if it was written after the scan had read the store, before the scan returned.
    store.during_scan = lambda: replica.saw(written)
    async with following(replica):
        assert replica.get(B) == written
    await store.aclose()


async def test_reading_many_jobs_does_not_block_other_tasks(tmp_path: Path) -> None:
    store = FragileStore(tmp_path / "state.db")
    for number in range(2_000):
        job = making.job(f"{number:X}")
        store.more.append(
            StateEntry(f"jobs/public/{job.job_id}", codec.encode_job(job), number + 1)
        )
    turns = 0

    def start_counting() -> None:
        nonlocal turns
        turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await turn()
            turns += 1

    store.during_scan = start_counting
    counting = asyncio.create_task(count())
    async with following(Replica(store)) as replica:
        assert turns >= 7
        assert len(replica.under_way()) == 2_000
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    await store.aclose()
