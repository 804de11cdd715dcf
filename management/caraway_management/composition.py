"""Builds the parts of one instance, and the work that it does besides answering requests."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from caraway_core import tasks
from caraway_management.deployments.working import DeploymentWork
from caraway_management.monitoring import announcing
from caraway_management.monitoring.delivering import Deliverer
from caraway_management.monitoring.judging import Judge
from caraway_management.outbox import Handler, Worker
from caraway_management.services import Services


@dataclass(frozen=True, slots=True)
class Job:
    """Work that goes on as long as the process. It begins again after a failure."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


def handlers(services: Services) -> Mapping[str, Handler]:
    """Return what does the entries of the outbox, by their kinds."""
    return DeploymentWork(services).handlers


def jobs(services: Services) -> list[Job]:
    """Return the background work of one instance."""
    worker = Worker(services.database, services.now, handlers(services))
    # Receivers that do not answer keep no deployment waiting.
    deliver = {announcing.KIND: Deliverer(services).deliver}
    notices = Worker(services.database, services.now, deliver)
    return [
        Job("do what changes caused", worker.run),
        Job("judge monitors", Judge(services, worker.owner).run),
        Job("send notices", notices.run),
        Job("run the deployer", services.deployer.run),
    ]


@asynccontextmanager
async def working(services: Services) -> AsyncIterator[None]:
    """Do the background work until the block ends."""
    background = tasks.Tasks()
    for job in jobs(services):
        background.keep(job.run, job.name)
    try:
        yield
    finally:
        await background.aclose()
