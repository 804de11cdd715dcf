"""Transfers projects to another organization."""

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import configs, refusals
from caraway_management.projects import editing
from caraway_management.projects.editing import ProjectContext
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import storing
from caraway_management.store.tables import Deployment, Monitor, Project, Reaction

_FOLLOWING = (Deployment, Monitor, Reaction)


async def transfer(
    session: AsyncSession,
    sealer: Sealer,
    target: ProjectContext,
    project: Project,
    confirmation: str,
) -> None:
    """Move a project with all that is its own. Secrets of its old organization are unlinked.

    Raises:
        RefusedError: the name is not confirmed, is taken there, or the plan or the clusters of
            the other organization do not allow the project.
    """
    if confirmation != project.name:
        raise refusals.invalid_field("confirm", "must be the name of the project, as it is written")
    if target.org.id == project.org_id:
        raise refusals.conflict("the project is in this organization already")
    taken = select(Project.id).where(
        Project.org_id == target.org.id, Project.name_key == project.name_key
    )
    if await session.scalar(taken) is not None:
        raise editing.name_taken(project.name)
    await editing.check_number(session, target)
    # All of its settings must be in the plan of the other organization.
    project.config = configs.merge({}, project.config, target.allowance)
    project.region, project.cluster_name = target.platform.check_placement(
        project.region, project.cluster_name, target.org.name
    )
    await storing.move(session, sealer, project.id, project.org_id, target.org.id)
    project.org_id = target.org.id
    project.forked_from = None
    editing.touch(project, target.now)
    for table in _FOLLOWING:
        await session.execute(
            update(table).where(table.project_id == project.id).values(org_id=target.org.id)
        )
    try:
        await session.flush()
    except IntegrityError as exc:
        raise editing.name_taken(project.name) from exc
