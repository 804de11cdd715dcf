"""Lists, creates, shows, changes and deletes projects."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.api.access import Caller, Change, ProjectId, needs
from caraway_management.api.paging import Paged
from caraway_management.api.projects import views
from caraway_management.api.projects.bodies import ChangedProject, NewProject
from caraway_management.api.revisions import TAKES_IF_MATCH, check_if_match, set_etag
from caraway_management.deployments import applying
from caraway_management.domain import alerts
from caraway_management.domain.configs import Allowance
from caraway_management.domain.identity import Organization
from caraway_management.monitoring import resources
from caraway_management.monitoring.targets import TargetKeeper
from caraway_management.organizations import editing as organizations
from caraway_management.projects import editing, finding, manifests
from caraway_management.projects.editing import ProjectContext
from caraway_management.store.tables import Project

router = APIRouter(tags=["projects"])


async def surroundings(
    session: AsyncSession, caller: Caller, org_id: int = 0, *, adds: bool = False
) -> ProjectContext:
    """Return what decides which settings a project of an organization may have.

    The organization is not deleted, and gets no other plan, before the transaction ends. With
    `adds` it gets no other project either. Take it before a project is locked: that is the order
    of all changes.

    Raises:
        RefusedError: it is deleted.
    """
    row = await organizations.find(session, org_id or caller.org.id, reads=not adds)
    limits = await accounts.read_plan(session, row.plan)
    services = caller.services
    org = Organization(row.id, row.name, row.plan, row.deleted_at)
    return ProjectContext(
        org, Allowance.from_plan(row.plan, limits), services.platform, services.now()
    )


async def checked(settings: dict[str, Any]) -> dict[str, object]:
    """Return settings whose manifest, if they have one, is valid, as its text.

    Raises:
        RefusedError: it is not valid.
    """
    if settings.get("manifest") is None:
        return settings
    return {**settings, "manifest": await manifests.check_apart(settings["manifest"])}


async def add_alerts(
    caller: Caller, change: Change, project: Project, default_alerts: bool | None = None
) -> None:
    """Add its alerts to a new project of the caller."""
    services = caller.services
    keeper = TargetKeeper(change.session, services.sealer, services.notices.channels)
    chosen, user_id = alerts.chosen(default_alerts), caller.credential.user_id
    await resources.add_alerts(change.session, change.now, project, user_id, keeper, chosen)


@router.get("")
async def list_projects(
    request: Request,
    caller: Annotated[Caller, needs("apps:read")],
    page: Paged,
) -> dict[str, object]:
    """List the projects of the organization, the oldest first.

    A manifest of more than 32 KiB is left out; `config.manifest_left_out` says so (ours).
    """
    async with caller.services.database.read() as session:
        rows = await finding.list_projects(session, caller.org.id, page.limit, page.offset)
    return {views.key(request): [views.view(each) for each in rows]}


@router.post("", status_code=201)
async def create_project(
    body: NewProject, caller: Annotated[Caller, needs("apps:write")], response: Response
) -> dict[str, object]:
    """Create a project. A deleted one of this name is revived, with its id and its settings."""
    settings = await checked(body.given())
    async with caller.change() as change:
        around = await surroundings(change.session, caller, adds=True)
        if body.cname is not None:
            settings.setdefault("region", around.platform.region_of(body.cname))
        project = await editing.create(change.session, around, body.name, settings)
        change.on("project", project.id, project.name)
        await add_alerts(caller, change, project, body.default_alerts)
    set_etag(response, project.revision)
    return views.view(project)


@router.get("/{projectId}")
async def get_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:read")], response: Response
) -> dict[str, object]:
    """Return a project."""
    async with caller.services.database.read() as session:
        project = await finding.read_project(session, caller.org.id, project_id)
    set_etag(response, project.revision)
    return views.view(project)


@router.put("/{projectId}", dependencies=TAKES_IF_MATCH)
async def update_project(
    project_id: ProjectId,
    body: ChangedProject,
    caller: Annotated[Caller, needs("apps:write")],
    response: Response,
) -> dict[str, object]:
    """Change settings of a project. What runs takes them with the next deployment."""
    settings = await checked(body.given())
    async with caller.change() as change:
        session = change.session
        around = await surroundings(session, caller)
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        check_if_match(caller.request, project.revision)
        editing.check_revision(project, body.revision)
        editing.update(around, project, settings)
    set_etag(response, project.revision)
    return views.view(project)


@router.delete("/{projectId}", status_code=204, dependencies=TAKES_IF_MATCH)
async def delete_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:delete")]
) -> None:
    """Delete a project. Its runtime ends; creating it again revives it."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        check_if_match(caller.request, project.revision)
        editing.delete(project, change.now)
        await applying.remove_project(session, change.now, project)
