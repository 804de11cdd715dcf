"""Pauses, resumes, forks and transfers projects."""

import asyncio
from typing import Annotated

from fastapi import APIRouter

from caraway_management.api.access import Caller, ProjectId, find_access, needs
from caraway_management.api.bodies import Body
from caraway_management.api.paging import Paged
from caraway_management.api.projects import views
from caraway_management.api.projects.bodies import ProjectName
from caraway_management.api.projects.resource import add_alerts, surroundings
from caraway_management.deployments import applying, creating
from caraway_management.domain import names
from caraway_management.domain.scopes import Role
from caraway_management.projects import editing, finding, forking, transferring

router = APIRouter(tags=["projects"])


class NewFork(Body):
    """A fork of a project. It needs a place if its source has one."""

    name: ProjectName
    region: str | None = None
    cluster_name: str | None = None
    scheduler_state_location: str | None = None


class Transfer(Body):
    """The other organization, and the name of the project, typed to confirm."""

    org: str
    confirm: str


@router.post("/{projectId}/pause")
async def pause_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, object]:
    """Pause a project: its runtime ends, and its settings stay editable."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        editing.pause(project, change.now)
        await applying.pause_project(session, change.now, project)
    return views.view(project)


@router.post("/{projectId}/resume")
async def resume_project(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, object]:
    """Resume a project, and deploy it. `deployment_id` is null if it has no manifest."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        editing.resume(project, change.now)
        await session.flush()
        deployment_id = None
        if project.manifest is not None:
            deployment = await creating.create_deployment(
                session, change.now, project, "resume", caller.actor,
                config=caller.services.platform.settings_of(
                    project.config, project.region, project.cluster_name
                ),
            )  # fmt: skip
            deployment_id = deployment.id
    return {**views.view(project), "deployment_id": deployment_id}


@router.get("/{projectId}/forks")
async def list_forks(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:read")], page: Paged
) -> dict[str, object]:
    """List the forks of a project."""
    async with caller.services.database.read() as session:
        source = await finding.find_project(session, caller.org.id, project_id)
        rows = await forking.list_forks(session, source, page.limit, page.offset)
    return {"forks": [views.view(each) for each in rows]}


@router.post("/{projectId}/forks", status_code=201)
async def create_fork(
    project_id: ProjectId, body: NewFork, caller: Annotated[Caller, needs("apps:write")]
) -> dict[str, object]:
    """Create a project with manifest and settings of another one, and deploy it.

    `shared_state` names what both projects write. Secrets of the source's own are not copied.
    """
    names.check_project(body.name)
    async with caller.services.database.read() as session:
        source = await finding.find_project(session, caller.org.id, project_id)
    text = await forking.read_text(source, caller.services.platform.git)
    checked = await asyncio.to_thread(forking.check, text)
    manifest = await asyncio.to_thread(forking.text_of, checked, body.scheduler_state_location)
    placement = {"region": body.region, "cluster_name": body.cluster_name}
    async with caller.change() as change:
        session = change.session
        around = await surroundings(session, caller, adds=True)
        source = await finding.find_project(session, caller.org.id, project_id)
        fork = await forking.fork(session, around, source, body.name, placement, manifest)
        change.on("project", fork.id, fork.name)
        await add_alerts(caller, change, fork)
        deployment = await creating.create_deployment(
            session, change.now, fork, "fork", caller.actor,
            config=caller.services.platform.settings_of(
                fork.config, fork.region, fork.cluster_name
            ),
        )  # fmt: skip
    return {
        **views.view(fork),
        "shared_state": list(checked.shared_state),
        "deployment_id": deployment.id,
    }


@router.post("/{projectId}/transfer")
async def transfer_project(
    project_id: ProjectId, body: Transfer, caller: Annotated[Caller, needs("apps:delete")]
) -> dict[str, object]:
    """Transfer a project to another organization of the caller. Only in Caraway.

    The caller administers its own, and may create projects in the other one. Secrets of the old
    organization are unlinked; the project's own go with it.
    """
    caller.within.require_role(Role.ADMIN)
    async with caller.change() as change:
        session = change.session
        access = await find_access(session, caller.credential, body.org)
        target = await surroundings(session, caller, access.org.id, adds=True)
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        change.on("project", project.id, project.name)
        access.require_scope("apps:write")
        sealer = caller.services.sealer
        await transferring.transfer(session, sealer, target, project, body.confirm)
        await applying.apply_project(session, change.now, project.id)
    return views.view(project)
