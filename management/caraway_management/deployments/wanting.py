"""Collects what should run for a project."""

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.deployers.protocol import Wanted
from caraway_management.domain import limiting, plans
from caraway_management.store.tables import Deployment, Org, PlanRow, Project


async def collect(session: AsyncSession, project: Project, deployment: Deployment) -> Wanted:
    """Return what should run for a project with the manifest and config of a deployment.

    Secrets, API keys and limits are those of now. What exceeds the limits is lowered.
    """
    org = await session.get_one(Org, project.org_id)
    plan = await session.get_one(PlanRow, org.plan)
    return Wanted(
        project_id=project.id,
        org_id=org.id,
        org=org.name,
        name=project.name,
        deployment_id=deployment.id,
        manifest=deployment.manifest,
        config=limiting.within(deployment.config, plans.read_limits(plan.limits)),
        tags=project.tags,
        limits=plan.limits,
        region=project.region,
        cluster_name=project.cluster_name,
        is_paused=project.paused_at is not None,
    )
