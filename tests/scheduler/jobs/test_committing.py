"""Writes of jobs: they wait for a store that is away, and never overwrite another's."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core import errors
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import Job, StoredJob
from tests.scheduler.jobs import making
from tests.scheduler.jobs.stepping import World, play

AWAY = errors.StateAwayError("the state store is away")


def began(job: Job) -> Job:
    return states.began(job, making.START, False)


def test_write_is_told_to_who_follows_with_its_revision() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        written = await world.committer.commit(held, began(held.job))
        assert written is not None and written.revision > held.revision
        assert world.seen == [written]
        assert await world.held(held.job) == written

    play(work)


def test_job_that_moved_on_is_not_overwritten_and_nobody_is_told() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        other = await world.committer.commit(held, states.cancelled(held.job, making.START))
        assert await world.committer.commit(held, began(held.job)) is None
        assert await world.held(held.job) == other
        assert len(world.seen) == 1

    play(work)


def test_deleted_job_is_not_brought_back() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        assert await world.records.delete(held)
        assert await world.committer.commit(held, began(held.job)) is None
        assert await world.records.get(held.job.principal, held.job.job_id) is None

    play(work)


def test_lost_answer_of_a_write_that_was_done_counts_as_done() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        lost = [True]
        world.store._loses = lambda _: bool(lost) and lost.pop()
        written = await world.committer.commit(held, began(held.job))
        assert written is not None and written.job == began(held.job)
        assert await world.held(held.job) == written

    play(work)


def test_store_that_is_away_is_waited_for_and_the_cause_is_told() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        world.store.away = AWAY
        task = asyncio.create_task(world.committer.commit(held, began(held.job)))
        await world.settled(lambda: len(world.store.puts) > 3)
        assert not task.done()
        assert world.committer.waits_for(held.job.job_id)
        world.store.away = None
        assert (await task) is not None
        assert world.committer.waits_for(held.job.job_id) == ""

    play(work)


def test_waiting_commit_asks_less_and_less_often_but_for_ever() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        world.store.away = AWAY
        task = asyncio.create_task(world.committer.commit(held, began(held.job)))
        await asyncio.sleep(3_600)
        assert 1_500 < len(world.store.puts) < 4_000 and not task.done()
        task.cancel()

    play(work)


@pytest.mark.parametrize("cancels", [True, False])
def test_commit_that_ends_without_an_answer_forgets_its_cause(cancels: bool) -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        world.store.away = AWAY
        task = asyncio.create_task(world.committer.commit(held, began(held.job)))
        await world.settled(lambda: world.committer.waits_for(held.job.job_id))
        if cancels:
            task.cancel()
        else:
            world.store.away = errors.ShuttingDownError("the store is closed")
        await asyncio.wait((task,))
        assert world.committer.waits_for(held.job.job_id) == ""
        assert task.cancelled() or isinstance(task.exception(), errors.ShuttingDownError)

    play(work)


def test_attempt_raises_at_once_what_the_store_raises() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        world.store.away = AWAY
        with pytest.raises(errors.StateAwayError):
            await world.committer.attempt(held, began(held.job))
        assert world.seen == []

    play(work)


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.integers(0, 3), max_size=60))
def test_of_writers_of_one_revision_exactly_one_wins(choices: list[int]) -> None:
    """Also where answers are lost: each learns the truth about its own write."""

    async def work(world: World) -> None:
        held = await world.keep(making.job())
        lost = list(choices)
        world.store._loses = lambda _: bool(lost) and lost.pop() == 0
        wanted = [states.claimed(held.job, owner, making.START) for owner in ("a", "b", "c")]
        tries: list[Coroutine[Any, Any, StoredJob | None]] = [
            world.committer.commit(held, job) for job in wanted
        ]
        found = await asyncio.gather(*tries)
        won = [each for each in found if each is not None]
        assert len(won) == 1 and won[0] == await world.held(held.job)

    numbers = iter(choices)
    play(work, lambda count: min(next(numbers, 0), count - 1))
