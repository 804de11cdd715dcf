"""Two schedulers over one state store: after crashes and pauses, each job ends once."""

import asyncio
from pathlib import Path

import pytest

from caraway_core.errors import QueryCancelledError
from caraway_scheduler.jobs.model import Job, StoredJob
from caraway_scheduler.jobs.owners import DisplacedError
from tests.kit.deadlines import eventually
from tests.kit.job_schedulers import ADA, Scheduler, Site, site

NUMBERS = "SELECT value AS n FROM generate_series(1, 25000)"
# Its writes: create, begin, manifest, succeed.
STEPS = [(write, when) for write in range(1, 5) for when in ("before", "after")]


async def taken_by(place: Site, other: Scheduler, job: Job) -> Job:
    """Wait until the other scheduler has finished the job of a dead one."""
    place.forget_the_dead()
    return await other.ended(job.job_id)


@pytest.mark.parametrize(("write", "when"), STEPS[1:])
async def test_killed_at_any_step_a_job_is_finished_once(
    tmp_path: Path, write: int, when: str
) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.store.dies_at = write, when
        submitting = asyncio.create_task(one.submit(NUMBERS, key="k"))
        await one.store.died.wait()
        await one.kill()
        submitting.cancel()
        (job,) = await two.jobs.service.list(ADA.id, None, 10)
        job = await taken_by(place, two, job)
        assert job.status == "SUCCEEDED", job.error
        was_done = (write, when) == (4, "after")
        assert job.epoch == (1 if was_done else 2)
        assert len(two.dispatch.executed) == (0 if was_done else 1)
        assert sorted((await two.rows(job))["n"].to_pylist()) == list(range(1, 25_001))
        # A client that received no answer repeats its request, and gets the same job.
        assert (await two.submit(NUMBERS, key="k")).job_id == job.job_id

        async def swept() -> bool:
            return [each.name for each in place.results.glob("[!.]*")] == [job.result_key]

        await eventually(swept, "what the dead one stored is removed")


async def test_killed_before_the_job_is_recorded_nothing_was_promised(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.store.dies_at = 1, "before"
        submitting = asyncio.create_task(one.submit(NUMBERS, key="k"))
        await one.store.died.wait()
        await one.kill()
        assert not submitting.done()
        submitting.cancel()
        # The key was stored but the job was not: a second request creates it.
        job = await two.submit(NUMBERS, key="k")
        assert (await two.ended(job.job_id)).status == "SUCCEEDED"


async def test_paused_owner_cannot_overwrite(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.dispatch.may_begin.clear()
        job = await one.submit(NUMBERS)
        await one.dispatch.began.wait()
        one.store.paused.clear()
        done = await taken_by(place, two, job)
        assert (done.status, done.epoch) == ("SUCCEEDED", 2)
        # It resumes, finishes its work, and finds that it has lost the job.
        one.dispatch.may_begin.set()
        one.store.paused.set()

        async def idle() -> bool:
            return one.jobs.scheduler.running == 0

        await eventually(idle, "the old owner has given up")
        assert await two.jobs.service.find(ADA.id, job.job_id) == done
        assert (await two.rows(done)).num_rows == 25_000
        assert dict(one.jobs.tallies.finished) == {}


async def test_answer_stays_where_a_job_ends_while_its_owner_takes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one", begins=False)
        two = await place.scheduler("two")
        two.dispatch.may_begin.clear()
        # The round handles this job first, and awaits the store for it.
        taken = await one.submit("SELECT 1")
        own = await two.submit(NUMBERS)
        await two.dispatch.began.wait()
        take, has_taken = two.jobs.scheduler._take, asyncio.Event()

        async def take_slowly(held: StoredJob) -> None:
            await take(held)
            two.dispatch.may_begin.set()
            await two.ended(own.job_id)
            has_taken.set()

        monkeypatch.setattr(two.jobs.scheduler, "_take", take_slowly)
        await one.kill()
        place.forget_the_dead()
        await has_taken.wait()
        await two.ended(taken.job_id)
        await until_idle(two)
        done = await two.ended(own.job_id)
        assert (done.status, done.epoch) == ("SUCCEEDED", 1)
        assert (await two.rows(done)).num_rows == 25_000


async def test_run_of_an_old_revision_leaves_the_answer_of_its_epoch(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        one.dispatch.may_begin.clear()
        job = await one.submit(NUMBERS)
        await one.dispatch.began.wait()
        old = one.jobs.replica.get(job.job_id)
        assert old is not None and not old.job.is_over
        one.dispatch.may_begin.set()
        done = await one.ended(job.job_id)
        await until_idle(one)
        one.jobs.scheduler.add(old)
        assert one.jobs.scheduler.queued == 1
        await until_idle(one)
        assert (await one.rows(done)).num_rows == 25_000


async def until_idle(scheduler: Scheduler) -> None:
    async def idle() -> bool:
        return scheduler.jobs.scheduler.running + scheduler.jobs.scheduler.queued == 0

    await eventually(idle, "nothing runs or waits")


async def test_statement_that_may_have_written_is_not_repeated(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.dispatch.may_begin.clear()
        job = await one.submit("INSERT INTO notes VALUES ('a')")
        await one.dispatch.began.wait()
        await one.kill()
        job = await taken_by(place, two, job)
        assert job.status == "FAILED"
        assert job.error is not None
        assert "may or may not have written" in job.error.message
        assert two.dispatch.executed == []


async def test_write_that_did_not_begin_is_done_by_the_other(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one", begins=False)
        two = await place.scheduler("two")
        job = await one.submit("INSERT INTO notes VALUES ('a')")
        await one.kill()
        job = await taken_by(place, two, job)
        assert job.status == "SUCCEEDED", job.error
        assert (await two.rows(job)).to_pylist() == [{"count": 1}]


async def test_cancel_through_another_scheduler_stops_the_work(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT 1")
        await one.dispatch.began.wait()
        assert (await two.jobs.service.cancel(ADA.id, job.job_id)).status == "CANCELLED"

        async def idle() -> bool:
            return one.jobs.scheduler.running == 0

        await eventually(idle, "the owner has stopped")
        assert two.dispatch.executed == []


async def test_other_schedulers_report_status_progress_and_answer(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        two = await place.scheduler("two")
        one.dispatch.may_begin.clear()
        job = await one.submit(NUMBERS)
        await one.dispatch.began.wait()

        async def told() -> bool:
            running = await two.jobs.service.find(ADA.id, job.job_id)
            return await two.jobs.service.progress(running) is not None

        await eventually(told, "the other scheduler knows how far it is")
        waiting = asyncio.create_task(two.jobs.service.wait(ADA.id, job.job_id, 60))
        one.dispatch.may_begin.set()
        done = await waiting
        assert done.status == "SUCCEEDED"
        assert (await two.rows(done)).num_rows == 25_000


async def test_stopped_scheduler_hands_its_jobs_over_at_once(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one", max_concurrent=1)
        one.dispatch.may_begin.clear()
        jobs = [await one.submit("SELECT 1"), await one.submit("SELECT 2")]
        await one.dispatch.began.wait()
        await one.jobs.stop(0)
        two = await place.scheduler("two")
        for job in jobs:
            assert (await two.ended(job.job_id)).status == "SUCCEEDED"


async def test_restart_under_the_same_id_continues_at_once(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        one.dispatch.may_begin.clear()
        jobs = [await one.submit(f"SELECT {number}") for number in range(4)]
        await one.dispatch.began.wait()
        await one.kill()
        again = await place.scheduler("one")
        for job in jobs:
            done = await again.ended(job.job_id)
            assert (done.status, done.epoch) == ("SUCCEEDED", 2)


async def test_two_processes_under_one_id_do_not_fight(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")

        async def present() -> bool:
            return await place.store.get("job-owners/one") is not None

        await eventually(present, "the first is registered")
        await place.scheduler("one")
        await asyncio.wait((one.working,), timeout=60)
        failure = one.working.exception()
        assert isinstance(failure, ExceptionGroup)
        assert failure.subgroup(DisplacedError) is not None


async def test_job_that_always_crashes_its_process_fails(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        first = await place.scheduler("0")
        first.dispatch.may_begin.clear()
        job = await first.submit("SELECT 1")
        await first.dispatch.began.wait()
        await first.kill()
        for number in range(1, 5):
            place.forget_the_dead()
            next_one = await place.scheduler(str(number))
            next_one.dispatch.may_begin.clear()
            await next_one.dispatch.began.wait()
            await next_one.kill()
        last = await place.scheduler("last")
        job = await taken_by(place, last, job)
        assert job.status == "FAILED"
        assert job.error is not None
        assert job.error.code == "INTERNAL"
        assert "5 times" in job.error.message
        assert last.dispatch.executed == []


async def test_engine_that_cancels_does_not_lose_the_job(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        one.dispatch.fails = [QueryCancelledError("the executor was told to cancel")]
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        assert job.status == "SUCCEEDED"


async def test_job_that_an_engine_always_cancels_fails(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler("one")
        one.dispatch.fails = [QueryCancelledError("the executor was told to cancel")] * 3
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        assert job.status == "FAILED"
        assert job.error is not None
        assert job.error.code == "EXECUTION_FAILED"
        assert "run it again" in job.error.message
