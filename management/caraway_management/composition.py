"""Builds the parts of one instance, and the work that it does besides answering requests."""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from caraway_core.concurrency import tasks
from caraway_core.settings import ManagementOptions
from caraway_kube.api import access, client
from caraway_management import outbox, tenancy
from caraway_management.deployers.kubernetes.deployer import KubernetesDeployer
from caraway_management.deployers.kubernetes.objects import MANAGER
from caraway_management.deployers.local.deployer import LocalDeployer
from caraway_management.deployers.protocol import Deployer, NoDeployer
from caraway_management.deployments import strays
from caraway_management.deployments.working import DeploymentWork
from caraway_management.limiting.spreading import LimitWork
from caraway_management.monitoring import announcing, leases
from caraway_management.monitoring.delivering import Deliverer
from caraway_management.monitoring.judging import Judge
from caraway_management.monitoring.looking import Looker
from caraway_management.monitoring.reacting import EventJudge
from caraway_management.monitoring.watching import RowJudge
from caraway_management.organizations import inviting
from caraway_management.organizations.inviting import Inviter
from caraway_management.outbox import Handler, Worker
from caraway_management.passthrough.runtimes import Runtimes
from caraway_management.passthrough.sampling import EVERY_S, Sampler
from caraway_management.services import Services

_SAMPLING_LEASE_S = 2 * EVERY_S


@dataclass(frozen=True, slots=True)
class Job:
    """Work that goes on as long as the process. It begins again after a failure."""

    name: str
    run: Callable[[], Coroutine[object, object, None]]


@asynccontextmanager
async def deployer(options: ManagementOptions, services: Services) -> AsyncIterator[Deployer]:
    """Return what runs projects, until the block ends. Runtimes outlive it.

    Raises:
        CarawayError: another service uses the same data directory, or runs the same projects.
    """
    if options.deployer == "none":
        yield NoDeployer()
        return
    if options.deployer == "kubernetes":
        api_access = access.find_access(os.environ)
        async with client.open_client(api_access, MANAGER) as kube:
            yield KubernetesDeployer(kube, options.installation)
        return
    folder = options.data_dir / "projects"
    local = LocalDeployer(folder, allows_files=options.allow_local_files)
    async with local.opened():
        # No other instance has an embedded database: the lock of the folder is enough.
        if not services.database.is_embedded:
            await tenancy.take(services, local)
        yield local


def handlers(services: Services) -> Mapping[str, Handler]:
    """Return what does the entries of the outbox, by their kinds."""
    others = LimitWork(services).handlers
    if type(services.deployer) is NoDeployer:
        # Deployments are left to instances that have a deployer.
        return others
    return {**DeploymentWork(services).handlers, **others}


def letters(services: Services) -> Mapping[str, Handler]:
    """Return what sends the notices and invitations of the outbox, by their kinds."""
    return {announcing.KIND: Deliverer(services).deliver, inviting.KIND: Inviter(services).send}


def jobs(services: Services, runtimes: Runtimes) -> list[Job]:
    """Return the background work of one instance."""
    worker = Worker(services.database, services.now, handlers(services))
    # Receivers that do not answer keep no deployment waiting.
    notices = Worker(services.database, services.now, letters(services))

    async def may_sample() -> bool:
        return await leases.take(
            services.database, services.now(), "sample metrics", worker.owner, _SAMPLING_LEASE_S
        )

    events, rows = EventJudge(services), RowJudge(services, worker.owner)
    sampler = Sampler(services, runtimes, may_sample)
    return [
        Job("do what changes caused", worker.run),
        Job("judge monitors", Judge(services, worker.owner).run),
        Job("look for events", Looker(services, worker.owner, events).run),
        Job("look for rows", Looker(services, worker.owner, rows).run),
        Job("sample metrics", sampler.run),
        Job("send notices", notices.run),
        Job("run the deployer", services.deployer.run),
        *_of_deployer(services),
    ]


def _of_deployer(services: Services) -> list[Job]:
    deployer = services.deployer
    if isinstance(deployer, NoDeployer):
        return []
    found = [
        # Once; it begins again only after a failure.
        Job("compare runtimes with projects", partial(strays.reconcile, services)),
        Job("wake deployments", DeploymentWork(services).run_wakeups),
    ]
    if isinstance(deployer, LocalDeployer) and not services.database.is_embedded:
        found.append(Job("hold the projects", partial(tenancy.hold, services, deployer)))
    return found


@asynccontextmanager
async def working(services: Services) -> AsyncIterator[None]:
    """Do the background work until the block ends."""
    background, runtimes = tasks.Tasks(), Runtimes()
    if services.database.is_embedded:
        # No other instance has it: what the last one has begun is free.
        await outbox.release_all(services.database)
    for job in jobs(services, runtimes):
        background.keep(job.run, job.name)
    try:
        yield
    finally:
        await background.aclose()
        await runtimes.aclose()
