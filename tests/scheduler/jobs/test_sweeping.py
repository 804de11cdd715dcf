"""Answers go when their time has passed; nothing goes that a job has or may be writing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core import errors
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import JobId
from caraway_scheduler.jobs.job_index import JobIndex
from caraway_scheduler.jobs.model import Job, JobStatus, StoredJob, Totals
from caraway_scheduler.jobs.replica import Replica
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.jobs.sweeping import Sweeper
from tests.scheduler.jobs import making
from tests.scheduler.jobs.stepping import KEPT_S, World, play

NOW = making.START + timedelta(days=1)


class Seen:
    """The replica as a sweeper asks it."""

    def __init__(self, *held: StoredJob) -> None:
        self.is_current = True
        self.held = held

    def expired(self, now: datetime) -> Sequence[StoredJob]:
        index = JobIndex()
        for each in self.held:
            index.put(each.job)
        return [held for each in index.expired(now) if (held := self.get(each)) is not None]

    def get(self, job_id: JobId) -> StoredJob | None:
        return {each.job.job_id: each for each in self.held}.get(job_id)

    async def catch_up(self) -> None:
        pass

    @property
    def unreadable(self) -> frozenset[JobId]:
        return frozenset()


def sweeper(world: World, replica: Seen, now: datetime = NOW) -> Sweeper:
    seen: Any = replica
    return Sweeper(_shared(world, seen), world.results, lambda: now, 5, 60)


async def remove_orphans(world: World) -> None:
    """Remove orphans with a replica that follows the store."""
    replica = Replica(world.store)
    following = asyncio.create_task(replica.follow_jobs())
    try:
        await Sweeper(_shared(world, replica), world.results, lambda: NOW).remove_orphans()
    finally:
        following.cancel()


def _shared(world: World, replica: Any) -> SharedJobs:
    return SharedJobs(world.records, replica, world.committer, KEPT_S)


def done(job_id: str, expires_at: datetime | None, **changes: Any) -> Job:
    totals = Totals(1, 1, 1)
    return making.job(job_id, status="SUCCEEDED", totals=totals, expires_at=expires_at, **changes)


@pytest.mark.parametrize(
    ("job", "is_closed"),
    [
        (done("A-1", NOW), True),
        (done("A-1", NOW - timedelta(days=99)), True),
        (done("A-1", NOW + timedelta(microseconds=1)), False),
        (done("A-1", None), False),
        (making.job("A-1", status="RUNNING", expires_at=NOW - timedelta(days=1)), False),
        (making.job("A-1", status="FAILED", expires_at=NOW - timedelta(days=1)), False),
        (making.job("A-1", status="CLOSED", expires_at=NOW - timedelta(days=1)), False),
    ],
)
def test_only_successful_jobs_whose_time_has_passed_are_closed(job: Job, is_closed: bool) -> None:
    async def work(world: World) -> None:
        held = await world.keep(job)
        await world.chunk(job.result_key)
        await sweeper(world, Seen(held)).expire()
        standing = await world.standing(job)
        assert standing == (replace(job, status="CLOSED") if is_closed else job)
        assert bool(await world.results.keys()) is not is_closed

    play(work)


def test_results_that_are_too_much_for_their_key_are_removed_early() -> None:
    async def work(world: World) -> None:
        later = NOW + timedelta(hours=1)
        held = [await world.keep(done(f"A-{number}", later)) for number in (1, 2)]
        for each in held:
            await world.chunk(each.job.result_key)
        seen: Any = Seen(*held)
        quota: Quota[JobId] = Quota("results", QuotaLimits(most_bytes_each=1))
        for each in held:
            quota.count("key", each.job.job_id, 1)
        of = Sweeper(
            _shared(world, seen), world.results, lambda: NOW,
            quota=quota,
        )  # fmt: skip
        await of.expire()
        assert [(await world.standing(each.job)).status for each in held] == ["CLOSED", "SUCCEEDED"]
        assert await world.results.keys() == [held[1].job.result_key]

    play(work)


def test_closed_job_is_remembered_for_its_time() -> None:
    async def work(world: World) -> None:
        held = await world.keep(done("A-1", NOW))
        await sweeper(world, Seen(held)).expire()
        await asyncio.sleep(KEPT_S - 10)
        assert (await world.standing(held.job)).status == "CLOSED"
        await asyncio.sleep(20)
        assert await world.records.get(held.job.principal, held.job.job_id) is None

    play(work)


def test_of_two_sweepers_one_closes_and_both_end_well() -> None:
    async def work(world: World) -> None:
        held = await world.keep(done("A-1", NOW))
        await world.chunk(held.job.result_key)
        await asyncio.gather(*(sweeper(world, Seen(held)).expire() for _ in range(3)))
        assert (await world.standing(held.job)).status == "CLOSED"
        assert await world.results.keys() == []
        assert len(world.seen) <= 1 or len({each.revision for each in world.seen}) == 1

    play(work)


def test_answer_is_kept_while_the_job_could_not_be_closed() -> None:
    """A job that says SUCCEEDED without its rows would be a broken promise."""

    async def work(world: World) -> None:
        held = await world.keep(done("A-1", NOW))
        await world.chunk(held.job.result_key)
        world.store.away = errors.StateAwayError("away")
        with pytest.raises(errors.StateAwayError):
            await sweeper(world, Seen(held)).expire()
        assert await world.results.keys() == [held.job.result_key]

    play(work)


STATUSES: tuple[JobStatus, ...] = (
    "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CLOSED",
)  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
def test_results_are_wanted_by_the_epoch_that_has_them_or_may_write_them(
    status: JobStatus,
) -> None:
    async def work(world: World) -> None:
        await world.keep(making.job("A-1", status=status, epoch=3))
        for epoch in range(1, 6):
            await world.chunk(f"A-1.{epoch}")
        await remove_orphans(world)
        kept = {"PENDING": [3, 4, 5], "RUNNING": [3, 4, 5], "SUCCEEDED": [3]}.get(status, [])
        assert await world.results.keys() == [f"A-1.{epoch}" for epoch in kept]

    play(work)


@pytest.mark.parametrize(
    "key", ["A-1", "A-1.", "A-1.x", ".1", "B-1.1", "A-1.-1", "A-1.1.1", "A-1.\xb2"]
)
def test_keys_that_no_job_has_are_orphans(key: str) -> None:
    async def work(world: World) -> None:
        await world.keep(making.job("A-1"))
        await world.chunk("A-1.1")
        await world.chunk(key)
        await remove_orphans(world)
        assert await world.results.keys() == ["A-1.1"]

    play(work)


def test_nothing_is_removed_while_the_jobs_cannot_be_read() -> None:
    async def work(world: World) -> None:
        await world.chunk("A-1.1")
        world.store.away = errors.StateAwayError("away")
        with pytest.raises(errors.StateAwayError):
            await remove_orphans(world)
        assert await world.results.keys() == ["A-1.1"]

    play(work)


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.integers(0, 3), max_size=80))
def test_job_that_begins_while_orphans_are_removed_keeps_its_rows(choices: list[int]) -> None:
    async def work(world: World) -> None:
        await world.chunk("GONE.1")

        async def submits() -> None:
            held = await world.keep(making.job("A-1"))
            await world.chunk(held.job.result_key)

        await asyncio.gather(remove_orphans(world), submits())
        assert await world.results.keys() == ["A-1.1"]

    numbers = iter(choices)
    play(work, lambda count: min(next(numbers, 0), count - 1))


def test_sweeping_goes_on_after_failures_and_looks_for_orphans_rarely() -> None:
    async def work(world: World) -> None:
        looked: list[float] = []
        keys = world.results.keys

        async def counted() -> Any:
            looked.append(world.loop.time())
            if len(looked) == 1:
                raise errors.ResultStoreAwayError("away")
            return await keys()

        world.results.keys = counted  # type: ignore[method-assign]
        task = asyncio.create_task(sweeper(world, Seen()).sweep_jobs())
        await asyncio.sleep(200)
        task.cancel()
        assert 4 <= len(looked) <= 6
        assert looked[1] - looked[0] < 10, "what failed is tried again in the next round"
        assert all(later - former >= 60 for former, later in pairwise(looked[1:]))

    play(work)


def test_nothing_is_swept_before_all_jobs_are_known() -> None:
    async def work(world: World) -> None:
        replica = Seen(await world.keep(done("A-1", NOW)))
        replica.is_current = False
        await world.chunk("GONE.1")
        task = asyncio.create_task(sweeper(world, replica).sweep_jobs())
        await asyncio.sleep(100)
        assert await world.results.keys() == ["GONE.1"] and world.seen == []
        replica.is_current = True
        await asyncio.sleep(10)
        assert await world.results.keys() == [] and world.seen
        task.cancel()

    play(work)
