"""Foremen over one state store, with a fake engine."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from caraway_core.ids import PUBLIC, CatalogVersion, TableName
from caraway_core.tables import ResultPlace
from caraway_scheduler.jobs.committing import Committer
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.owners import JobOwner, Owners
from caraway_scheduler.jobs.queue import FairQueue
from caraway_scheduler.jobs.replica import Replica
from caraway_scheduler.jobs.runner import JobResults, JobRunner
from caraway_scheduler.jobs.scheduling import JobScheduler
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_scheduler.jobs.tallies import JobTallies
from tests.scheduler.jobs import making
from tests.scheduler.jobs.stepping import KEPT_S, RETENTION_S, Engine, World

ROUND_S = 1.0


@dataclass
class Site:
    """One scheduler as far as its jobs go."""

    world: World
    scheduler: JobScheduler
    replica: Replica
    engine: Engine
    tallies: JobTallies
    ended: list[Job]
    tasks: list["asyncio.Task[None]"]

    @property
    def owner(self) -> str:
        return self.scheduler.owner

    async def submit(self, job_id: str, principal: str = PUBLIC, **changes: Any) -> Job:
        job = making.job(job_id, principal, **{"owner": self.owner, **changes})
        held = await self.world.keep(job)
        self.replica.saw(held)
        self.scheduler.add(held)
        return held.job

    async def die(self) -> None:
        """End it as SIGKILL would: it says nothing to anybody."""
        for task in [*self.tasks, *self.scheduler._tasks._tasks]:
            task.cancel()
        await asyncio.gather(*self.tasks, *self.scheduler._tasks._tasks, return_exceptions=True)


async def site(
    world: World, name: str = "one", places: int = 1, *, begins: bool = True, incarnation: str = "i"
) -> Site:
    engine: Any = Engine(world)
    replica = Replica(world.store)
    shared = SharedJobs(world.records, replica, Committer(world.records, replica), KEPT_S)
    tallies, ended = JobTallies(), list[Job]()
    runner = JobRunner(
        engine,
        lambda: (CatalogVersion(1), frozenset({TableName("notes")})),
        shared,
        JobResults(world.results, ResultPlace("file", "/results"), timedelta(seconds=RETENTION_S)),
    )
    scheduler = JobScheduler(
        runner,
        FairQueue(100),
        Owners(world.store, JobOwner(name, incarnation), world.loop.time, 3.0, 6.0, ROUND_S),
        shared,
        tallies,
        lambda: places,
        lambda _, job: ended.append(job),
    )
    tasks = [asyncio.create_task(replica.follow_jobs()), asyncio.create_task(scheduler.run_jobs())]
    made = Site(world, scheduler, replica, engine, tallies, ended, tasks)
    await world.settled(lambda: replica.is_current)
    if begins:
        scheduler.begin_jobs()
    return made


async def over(world: World, *jobs: Job) -> list[Job]:
    """Wait until all of them are over, for ten minutes of the loop's time."""
    async with asyncio.timeout(600):
        while True:
            standing = [await world.standing(job) for job in jobs]
            if all(job.is_over for job in standing):
                return standing
            await asyncio.sleep(0.1)
