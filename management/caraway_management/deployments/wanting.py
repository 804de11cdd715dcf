"""Collects what should run for a project."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.deployers.protocol import RuntimeKey, Wanted
from caraway_management.domain import deployments, limiting, plans
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import api_keys, linking
from caraway_management.secrets.storing import Owner
from caraway_management.store.tables import Deployment, Org, PlanRow, Project


async def collect(
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
