"""Lists, creates, shows, changes and deletes projects."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.api.access import Caller, ProjectId, needs
from caraway_management.api.paging import Paged
from caraway_management.api.projects import views
from caraway_management.api.projects.bodies import ChangedProject, NewProject
from caraway_management.domain.configs import Allowance
from caraway_management.projects import editing, finding
from caraway_management.projects.editing import Surroundings

router = APIRouter(tags=["projects"])


async def surroundings(session: AsyncSession, caller: Caller) -> Surroundings:
    """Return what decides which settings a project may have."""
    limits = await accounts.read_plan(session, caller.org.plan)
    services = caller.services
    return Surroundings(
        caller.org, Allowance.of(caller.org.plan, limits), services.platform, services.now()
    )


@router.get("")
async def list_projects(
    request: Request,
    caller: Annotated[Caller, needs("apps:read")],
    page: Paged,
) -> dict[str, Any]:
    """List the projects of the organization, the oldest first."""
    async with caller.services.database.read() as session:
        found = await finding.list_projects(session, caller.org.id, page.limit, page.offset)
    return {views.key(request): [views.view(each) for each in found]}


@router.post("", status_code=201)
async def create_project(
    body: NewProject, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, Any]:
    """Create a project. A deleted one of this name is revived, with its id and its settings."""
    settings = body.given()
    async with caller.change() as change:
        around = await surroundings(change.session, caller)
        if body.cname is not None:
            settings.setdefault("region", around.platform.region_of(body.cname))
        project = await editing.create(change.session, around, body.name, settings)
        change.on("project", project.id, project.name)
    return views.view(project)


@router.get("/{projectId}")
async def get_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:read")]
) -> dict[str, Any]:
    """Return a project."""
    async with caller.services.database.read() as session:
        return views.view(await finding.find_project(session, caller.org.id, project_id))


@router.put("/{projectId}")
async def update_project(
    project_id: ProjectId, body: ChangedProject, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, Any]:
    """Change settings of a project. What runs takes them with the next deployment."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        editing.check_revision(project, body.revision)
        editing.update(await surroundings(session, caller), project, body.given())
    return views.view(project)


@router.delete("/{projectId}", status_code=204)
async def delete_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:delete")]
) -> None:
    """Delete a project. Its runtime ends; creating it again revives it."""
    async with caller.change() as change:
        project = await finding.find_project(change.session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        editing.delete(project, change.now)
