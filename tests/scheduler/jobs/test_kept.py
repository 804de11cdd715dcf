"""The stored jobs of one key do not grow without limit, nor at the cost of other keys."""

from datetime import timedelta
from typing import Any

import pytest

from caraway_core.errors import OverloadedError
from caraway_core.ids import PrincipalId
from caraway_scheduler.jobs import kept as keeping
from caraway_scheduler.jobs.kept import KeptJobs
from caraway_scheduler.jobs.model import Job, JobRequest, Totals
from caraway_scheduler.jobs.replica import Replica
from tests.scheduler.jobs import making
from tests.scheduler.jobs.stepping import World, play

ANN, BEN = PrincipalId("ann"), PrincipalId("ben")


def job(number: int, principal: PrincipalId = ANN, **changes: Any) -> Job:
    return making.job(f"A-{number}", principal=principal, **changes)


def done(number: int, size_bytes: int = 1, principal: PrincipalId = ANN) -> Job:
    expires_at = making.START + timedelta(days=9)
    totals = Totals(1, size_bytes, 1)
    return job(number, principal, status="SUCCEEDED", totals=totals, expires_at=expires_at)


async def kept(world: World, *jobs: Job, **limits: Any) -> tuple[KeptJobs, Replica]:
    replica = Replica(world.store)
    made = KeptJobs(replica, world.records, world.results, **limits)
    for each in jobs:
        replica.saw(await world.keep(each))
    return made, replica


def test_the_oldest_ended_job_of_the_same_key_makes_room() -> None:
    async def work(world: World) -> None:
        present = (job(1, status="RUNNING"), done(2), done(3), done(4, principal=BEN))
        await world.chunk(present[1].result_key)
        of, _ = await kept(world, *present, most=3)
        await of.make_room(job(5))
        left = [each for each in present if await world.records.get(each.principal, each.job_id)]
        assert [each.job_id for each in left] == ["A-1", "A-3", "A-4"]
        assert not await world.results.keys()
        assert (len(of.jobs), of.jobs.evictions) == (4, 1)

    play(work)


def test_a_key_whose_jobs_have_not_ended_is_refused_and_others_are_not() -> None:
    async def work(world: World) -> None:
        of, _ = await kept(world, job(1), job(2, status="RUNNING"), most=2)
        with pytest.raises(OverloadedError, match="too many asynchronous queries"):
            await of.make_room(job(3))
        await of.make_room(job(4, BEN))
        of.not_written(job(4, BEN))
        assert (len(of.jobs), of.jobs.refusals) == (2, 1)

    play(work)


def test_long_statements_count_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_STATEMENT_BYTES", 10_000)

    async def work(world: World) -> None:
        of, _ = await kept(world)
        long = JobRequest("SELECT '" + "x" * 3_000 + "'")
        for number in (1, 2):
            await of.make_room(job(number, request=long))
        with pytest.raises(OverloadedError):
            await of.make_room(job(3, request=long))

    play(work)


def test_results_above_the_limit_are_told_oldest_first() -> None:
    async def work(world: World) -> None:
        present = [done(1, 40), done(2, 40), done(3, 40), done(4, 99, BEN)]
        of, replica = await kept(world, *present, most_result_bytes=100)
        assert of.results.surplus() == ["A-1"]
        standing = replica.get(present[0].job_id)
        assert standing is not None
        closed = await world.records.replace(standing, job(1, status="CLOSED"))
        assert closed is not None
        replica.saw(closed)
        assert (of.results.surplus(), of.results.size_bytes) == ([], 179)

    play(work)
