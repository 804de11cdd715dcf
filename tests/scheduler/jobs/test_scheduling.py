"""Foremen over one state store: whose turn it is, who takes over, and what a stop leaves."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core import errors
from caraway_core.ids import JobId
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import JobRequest
from caraway_scheduler.jobs.owners import DisplacedError
from caraway_scheduler.jobs.runner import now
from tests.scheduler.jobs import making
from tests.scheduler.jobs.sites import over, site
from tests.scheduler.jobs.stepping import Answer, World, play


def test_jobs_wait_until_the_catalog_is_loaded() -> None:
    async def work(world: World) -> None:
        one = await site(world, begins=False)
        job = await one.submit("A-1")
        await asyncio.sleep(60)
        assert (one.scheduler.queued, one.scheduler.running) == (1, 0)
        one.scheduler.begin_jobs()
        (done,) = await over(world, job)
        assert done.status == "SUCCEEDED" and one.ended == [done]
        assert dict(one.tallies.finished) == {("SUCCEEDED",): 1}

    play(work)


@pytest.mark.parametrize("places", [1, 2, 5])
def test_no_more_run_at_once_than_there_are_places(places: int) -> None:
    async def work(world: World) -> None:
        one = await site(world, places=places)
        gate = asyncio.Event()
        one.engine.script = [Answer((1,), waits=gate)]
        jobs = [await one.submit(f"A-{number}") for number in range(6)]
        await asyncio.sleep(30)
        assert (one.scheduler.running, one.scheduler.queued) == (places, 6 - places)
        assert len(one.engine.executed) == places
        gate.set()
        assert {job.status for job in await over(world, *jobs)} == {"SUCCEEDED"}
        assert one.scheduler.running == one.scheduler.queued == 0
        assert not one.scheduler._queue._running, "what ended counts against nobody's next job"

    play(work)


def test_principals_take_turns() -> None:
    async def work(world: World) -> None:
        one = await site(world, begins=False)
        for number in range(3):
            await one.submit(f"A-{number}", "ada")
        jobs = [await one.submit("B-0", "bob"), await one.submit("C-0", "cyd")]
        one.scheduler.begin_jobs()
        await over(world, *jobs)
        assert {job.job_id for job in one.ended[:3]} == {"A-0", "B-0", "C-0"}

    play(work)


def test_job_that_is_added_again_runs_once_and_one_that_is_over_does_not() -> None:
    async def work(world: World) -> None:
        one = await site(world, begins=False)
        job = await one.submit("A-1")
        held = await world.held(job)
        for _ in range(3):
            one.scheduler.add(held)
        over_already = replace(held, job=states.cancelled(held.job, making.START))
        one.scheduler.add(replace(over_already, job=replace(over_already.job, job_id=JobId("A-2"))))
        assert one.scheduler.queued == 1
        one.scheduler.begin_jobs()
        await over(world, job)
        await asyncio.sleep(10)
        assert len(one.engine.executed) == 1

    play(work)


@pytest.mark.parametrize("is_running", [True, False])
def test_cancelled_job_is_stopped_or_leaves_the_queue(is_running: bool) -> None:
    async def work(world: World) -> None:
        one = await site(world, begins=is_running)
        one.engine.script = [Answer((1,), waits=asyncio.Event())]
        job = await one.submit("A-1")
        await asyncio.sleep(5)
        assert one.scheduler.running == is_running
        standing = await world.held(job)
        cancelled = states.cancelled(standing.job, now())
        assert await world.committer.attempt(standing, cancelled) is not None
        await asyncio.sleep(5)
        assert one.scheduler.running == one.scheduler.queued == 0
        assert await world.standing(job) == cancelled
        assert await world.results.keys() == [], "what it stored is removed"
        assert one.ended == []

    play(work)


def test_failure_that_nobody_foresaw_gives_the_place_back() -> None:
    async def work(world: World) -> None:
        one = await site(world)

        async def broken(_: object) -> None:
            raise KeyError("a defect")

        run, one.scheduler._runner.run_job = one.scheduler._runner.run_job, broken  # type: ignore[method-assign,assignment]
        await one.submit("A-1")
        await world.settled(lambda: one.scheduler.queued == 0)
        one.scheduler._runner.run_job = run  # type: ignore[method-assign]
        job = await one.submit("A-2")
        (done,) = await over(world, job)
        assert done.status == "SUCCEEDED"

    play(work)


def test_jobs_of_a_dead_scheduler_are_taken_over_and_fence_it_off() -> None:
    async def work(world: World) -> None:
        one, two = await site(world, "one"), await site(world, "two")
        one.engine.script = [Answer((1,), waits=asyncio.Event())]
        jobs = [await one.submit("A-1"), await one.submit("A-2")]
        await asyncio.sleep(5)
        await one.die()
        done = await over(world, *jobs)
        assert [(job.status, job.epoch) for job in done] == [("SUCCEEDED", 2)] * 2
        assert two.tallies.taken_over == 2 and len(two.engine.executed) == 2
        assert {"A-1.2", "A-2.2"} <= set(await world.results.keys())

    play(work)


def test_live_scheduler_keeps_its_jobs_however_long_they_take() -> None:
    async def work(world: World) -> None:
        one, two = await site(world, "one"), await site(world, "two")
        gate = asyncio.Event()
        one.engine.script = [Answer((1,), waits=gate)]
        job = await one.submit("A-1")
        await asyncio.sleep(200)
        assert two.tallies.taken_over == 0
        gate.set()
        (done,) = await over(world, job)
        assert (done.epoch, two.engine.executed) == (1, [])

    play(work)


def test_statement_that_may_have_written_fails_when_its_scheduler_dies() -> None:
    async def work(world: World) -> None:
        one, two = await site(world, "one"), await site(world, "two")
        one.engine.script = [Answer((1,), waits=asyncio.Event())]
        job = await one.submit("A-1", request=JobRequest("INSERT INTO notes VALUES ('a')"))
        await asyncio.sleep(5)
        await one.die()
        (done,) = await over(world, job)
        assert done.status == "FAILED" and two.engine.executed == []
        assert done.error is not None and "written" in done.error.message
        assert dict(two.tallies.finished) == {("FAILED",): 1}

    play(work)


@settings(max_examples=12, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=200), st.integers(0, 12))
def test_whoever_dies_whenever_each_job_ends_once_with_its_rows(
    choices: list[int], dies_after: int
) -> None:
    async def work(world: World) -> None:
        sites = [await site(world, name, places=2) for name in ("one", "two", "three")]
        jobs = [await sites[number % 3].submit(f"A-{number}") for number in range(4)]
        await asyncio.sleep(dies_after / 4)
        await sites[0].die()
        done = await over(world, *jobs)
        assert {job.status for job in done} == {"SUCCEEDED"}
        for job in done:
            manifest = await world.records.manifest(job)
            assert manifest is not None
            rows = [world.results.rows(job.result_key, each) for each in manifest.chunks]
            assert [each.num_rows for each in rows] == [3, 2]
        ended = [job.job_id for each in sites for job in each.ended]
        assert len(ended) == len(set(ended)), "no end is told twice"
        for each in sites[1:]:
            await each.die()

    numbers = iter(choices)
    play(work, lambda count: min(next(numbers, 0), count - 1))


def test_stop_lets_jobs_end_and_gives_the_others_away_at_once() -> None:
    async def work(world: World) -> None:
        one, two = await site(world, "one"), await site(world, "two", begins=False)
        gate = asyncio.Event()
        one.engine.script = [Answer((1,), waits=gate)]
        first, second = await one.submit("A-1"), await one.submit("A-2")
        await asyncio.sleep(2)
        stopping = asyncio.create_task(one.scheduler.stop(30))
        await asyncio.sleep(5)
        gate.set()
        await stopping
        assert (await world.standing(first)).status == "SUCCEEDED"
        waiting = await world.standing(second)
        assert (waiting.status, waiting.owner, waiting.attempts) == ("PENDING", "", 0)
        await one.die()
        two.scheduler.begin_jobs()
        (done,) = await over(world, second)
        assert (done.status, done.epoch) == ("SUCCEEDED", 2)

    play(work)


def test_stop_that_takes_too_long_gives_the_running_job_back_with_its_attempt() -> None:
    async def work(world: World) -> None:
        one = await site(world)
        one.engine.script = [Answer((1,), waits=asyncio.Event())]
        job = await one.submit("A-1")
        await asyncio.sleep(2)
        began = world.loop.time()
        await one.scheduler.stop(10)
        assert world.loop.time() - began < 35
        standing = await world.standing(job)
        assert (standing.status, standing.owner, standing.attempts) == ("RUNNING", "", 0)
        assert await world.results.keys() == [] and one.scheduler.running == 0

    play(work)


def test_stop_does_not_give_away_a_statement_that_may_have_written() -> None:
    async def work(world: World) -> None:
        one = await site(world)
        one.engine.script = [Answer((1,), waits=asyncio.Event())]
        job = await one.submit("A-1", request=JobRequest("DELETE FROM notes"))
        await asyncio.sleep(2)
        await one.scheduler.stop(1)
        standing = await world.standing(job)
        assert (standing.status, standing.owner) == ("RUNNING", one.owner)
        assert standing.writes and standing.attempts == 1

    play(work)


def test_stop_ends_in_time_without_a_store() -> None:
    async def work(world: World) -> None:
        one = await site(world, begins=False)
        await one.submit("A-1")
        world.store.away = errors.StateAwayError("away")
        began = world.loop.time()
        await one.scheduler.stop(5)
        assert world.loop.time() - began < 12

    play(work)


def test_nothing_begins_once_a_stop_has_begun() -> None:
    async def work(world: World) -> None:
        one = await site(world)
        await one.scheduler.stop(1)
        await one.submit("A-1")
        await asyncio.sleep(60)
        assert one.engine.executed == []

    play(work)


def test_second_process_of_one_id_ends_the_first() -> None:
    async def work(world: World) -> None:
        one = await site(world, "one", incarnation="a")
        await site(world, "one", incarnation="b")
        _, failed = await asyncio.wait_for(asyncio.wait((one.tasks[1],)), 60), one.tasks[1]
        raised = failed.exception()
        assert isinstance(raised, ExceptionGroup)
        assert isinstance(raised.exceptions[0], DisplacedError)

    play(work)


def test_store_that_is_away_is_told_with_the_progress_and_passes() -> None:
    async def work(world: World) -> None:
        one = await site(world)
        gate = asyncio.Event()
        one.engine.script = [Answer((1,), waits=gate)]
        job = await one.submit("A-1")
        await asyncio.sleep(3)
        told = one.scheduler.progress(job.job_id)
        assert told is not None and told.waits_for == "" and told.rows == 1
        world.store.away = errors.StateAwayError("the state store is away")
        await asyncio.sleep(10)
        told = one.scheduler.progress(job.job_id)
        assert told is not None and "away" in told.waits_for and told.rows == 1
        world.store.away = None
        await asyncio.sleep(10)
        told = one.scheduler.progress(job.job_id)
        assert told is not None and told.waits_for == ""
        assert one.scheduler.progress(JobId("B-1")) is None
        gate.set()
        await over(world, job)

    play(work)


def test_other_schedulers_read_how_far_a_job_is() -> None:
    async def work(world: World) -> None:
        one = await site(world)
        gate = asyncio.Event()
        one.engine.script = [Answer((3, 4), waits=gate)]
        job = await one.submit("A-1")
        await asyncio.sleep(5)
        told = await world.records.progress(await world.standing(job))
        assert told is not None and told.rows == 7
        gate.set()
        await over(world, job)

    play(work)
