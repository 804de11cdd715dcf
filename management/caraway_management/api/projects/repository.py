"""The repository of a project, from which its manifest comes. Our paths; the codes are shared."""

from typing import Annotated

from fastapi import APIRouter

from caraway_management.api.access import Caller, ProjectId, needs
from caraway_management.api.bodies import Body
from caraway_management.api.projects import views
from caraway_management.domain import refusals
from caraway_management.projects import finding, repositories

router = APIRouter(tags=["projects"])


class Repository(Body):
    """A git repository, with the folder of the manifest and the branch that is deployed."""

    repository: str
    root_directory: str = ""
    production_branch: str | None = None


@router.put("/{projectId}/repository")
async def connect_repository(
    project_id: ProjectId, body: Repository, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, object]:
    """Connect a project to a repository, and take the manifest at the head of its branch.

    While it is connected, other changes of the manifest are refused with 409 `github_connected`.
    """
    allowed = caller.services.platform.git
    async with caller.services.database.read() as session:
        await finding.find_project(session, caller.org.id, project_id)
    source = await repositories.find(
        body.repository, body.root_directory, body.production_branch, allowed
    )
    fetched = await repositories.fetch(source, allowed)
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        await repositories.connect(session, change.now, project, fetched)
    return views.view(project)


@router.post("/{projectId}/repository/synchronize")
async def synchronize_repository(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, object]:
    """Take the manifest at the head of the branch. Nothing is deployed."""
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
    if (source := repositories.source_of(project)) is None:
        raise refusals.conflict("the project is connected to no repository", "not_connected")
    fetched = await repositories.fetch(source, caller.services.platform.git)
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        repositories.take(project, change.now, fetched)
    return views.view(project)


@router.delete("/{projectId}/repository", status_code=204)
async def disconnect_repository(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:write")]
) -> None:
    """Disconnect a project from its repository. Its manifest stays, and can be changed again."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        repositories.disconnect(project, change.now)
