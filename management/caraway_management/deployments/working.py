"""Does the work of deployments: applies projects, observes runtimes, records their state.

Each step can be begun again. A step writes how far it is only after its effect, and what it starts
next is written in the same transaction.
"""

import logging
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import UnavailableError
from caraway_management.deployers.protocol import RejectedError, RuntimeKey, Wanted
from caraway_management.deployments import applying, records
from caraway_management.domain import deployments, limiting, plans
from caraway_management.domain.deployments import Code, Problem, Status
from caraway_management.outbox import Again, Entry, Handler
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import api_keys, linking
from caraway_management.secrets.storing import Owner
from caraway_management.services import Services
from caraway_management.store.tables import Deployment, Org, PlanRow, Project

logger = logging.getLogger(__name__)
_MOST_FAILURES = 5
"""A deployment ends after this many failures in a row that the deployer does not explain."""


class DeploymentWork:
    """The handlers of the entries that deployments cause."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by the kinds of entries."""
        return {
            applying.APPLY: self.apply,
            applying.REMOVE: self.remove,
            applying.OBSERVE: self.observe,
        }

    async def apply(self, entry: Entry) -> Again | None:
        """Bring the runtime of a project to its desired state."""
        project_id = entry.payload["project_id"]
        try:
            wanted = await self._begin(project_id)
            if wanted is not None:
                await self._services.deployer.apply(wanted)
        except RejectedError as exc:
            await self._fail(project_id, Problem(Code.UNABLE_TO_START, exc.message))
        except UnavailableError:
            raise
        # Any other failure: a bug, or something of the machine that may pass.
        except Exception:
            if entry.failures + 1 < _MOST_FAILURES:
                raise
            logger.exception("a project cannot be applied", extra={"project": project_id})
            text = "it cannot be applied; the log of the service has the reason"
            await self._fail(project_id, Problem(Code.INTERNAL_ERROR, text))
        return None

    async def remove(self, entry: Entry) -> None:
        """Remove the runtime of a project that has been deleted."""
        payload = entry.payload
        await self._services.deployer.remove(payload["project_id"], payload["created"])

    async def observe(self, entry: Entry) -> Again | None:
        """Observe the runtime of a deployment, and record the progress of the deployment."""
        services = self._services
        async with services.database.read() as session:
            row = await session.get(Deployment, entry.payload["deployment_id"])
            if row is None or records.progress_of(row).is_finished:
                return None
            created_at = (await session.get_one(Project, row.project_id)).created_at
        seen = await services.deployer.observe(row.project_id, deployments.mark(created_at))
        now = services.now()
        async with services.database.change() as session:
            project = await _lock(session, row.project_id)
            row = await session.get_one(Deployment, row.id)
            progress = records.judge(session, now, project, row, seen)
            if progress.status is Status.FAILED:
                await self._return_to_last(session, project)
            elif deployments.is_overdue(progress, now) and not progress.is_finished:
                await applying.apply_project(session, now, project.id)
        if progress.is_finished:
            return None
        is_watched = services.deployer.is_watching
        return Again(deployments.next_look_s(progress, now, is_watched=is_watched))

    async def run_wakeups(self) -> None:
        """Look at the deployments whose runtimes change, as soon as they do, until cancelled."""
        services = self._services
        while True:
            changed = await services.deployer.changed()
            async with services.database.change() as session:
                await applying.look_now(session, services.now(), changed)

    async def _begin(self, project_id: int) -> Wanted | None:
        """Begin the deployment that is queued, and return what should run; None for nothing."""
        now = self._services.now()
        async with self._services.database.change() as session:
            project = await _lock(session, project_id)
            if project.deleted_at is not None:
                return None
            row = await _current(session, project)
            if row is None:
                return None
            if row.status == Status.QUEUED:
                progress = deployments.begin(records.progress_of(row), now)
                records.write(session, now, row, progress)
                await applying.observe_deployment(session, now, row.id)
            return await _wanted(session, self._services.sealer, now, project, row)

    async def _fail(self, project_id: int, problem: Problem) -> None:
        """End the deployment that is under way, if there is one."""
        async with self._services.database.change() as session:
            project = await _lock(session, project_id)
            row = await records.unfinished_of(session, project_id)
            if row is not None:
                records.fail(session, self._services.now(), row, problem)
                await self._return_to_last(session, project)

    async def _return_to_last(self, session: AsyncSession, project: Project) -> None:
        """Have the runtime of the last deployment that succeeded again."""
        if project.deployed_id is not None:
            await applying.apply_project(session, self._services.now(), project.id)


async def _current(session: AsyncSession, project: Project) -> Deployment | None:
    """Return the deployment whose runtime a project should have.

    It is the one under way, or else the last one that succeeded.
    """
    row = await records.unfinished_of(session, project.id)
    if row is None and project.deployed_id is not None:
        row = await session.get(Deployment, project.deployed_id)
    if row is None and project.paused_at is not None:
        # The work that began before the pause ends.
        found = await records.list_deployments(session, project.id, None, 1, 0)
        row = found[0] if found else None
    return row


async def _lock(session: AsyncSession, project_id: int) -> Project:
    query = select(Project).where(Project.id == project_id).with_for_update()
    return (await session.scalars(query)).one()


async def _wanted(
    session: AsyncSession,
    sealer: Sealer,
    now: datetime,
    project: Project,
    deployment: Deployment,
) -> Wanted:
    """Return what should run for a project with the manifest and config of a deployment.

    Secrets, API keys and limits are those of now. What exceeds the limits is lowered, and API keys
    are made if there are none.

    Raises:
        SealedError: a secret or a key cannot be opened.
    """
    org = await session.get_one(Org, project.org_id)
    plan = await session.get_one(PlanRow, org.plan)
    keys = await api_keys.make(session, sealer, now, project.id)
    return Wanted(
        project_id=project.id,
        org_id=org.id,
        org=org.name,
        name=project.name,
        deployment_id=deployment.id,
        manifest=deployment.manifest,
        config=limiting.within(deployment.config, plans.read_limits(plan.limits)),
        tags=project.tags,
        secrets=await linking.values_in_force(session, sealer, Owner(org.id, project.id)),
        api_keys=tuple(RuntimeKey(number, value) for number, value in sorted(keys.items())),
        limits=plan.limits,
        region=project.region,
        cluster_name=project.cluster_name,
        is_paused=project.paused_at is not None,
        created=deployments.mark(project.created_at),
    )
