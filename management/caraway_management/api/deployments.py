"""Deployments of a project."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.api.access import Caller, Change, ProjectId, needs
from caraway_management.api.bodies import Body
from caraway_management.api.paging import Paged
from caraway_management.deployments import creating, records
from caraway_management.deployments.creating import Commit
from caraway_management.domain import configs, limiting, names, project_rules, refusals
from caraway_management.domain.configs import Allowance
from caraway_management.domain.deployments import Status
from caraway_management.domain.platform import Platform
from caraway_management.projects import finding, manifests, repositories
from caraway_management.projects.repositories import Fetched
from caraway_management.store.tables import Deployment, Project

router = APIRouter(tags=["deployments"])
_LOOK_EVERY_S = 0.2
_LONGEST_WAIT_S = 60
_LONGEST_TEXT = 1_000
DeploymentId = Annotated[int, Path(alias="deploymentId", description="The id of a deployment.")]


class NewDeployment(Body):
    """Settings of a deployment that replace those of the project. All are optional."""

    image: str | None = None
    image_tag: str | None = None
    replicas: int | None = Field(
        default=None, description="1 to 10, and at most what the plan allows."
    )
    channel: Literal["stable", "preview", "nightly", "internal"] | None = Field(
        default=None,
        description="The channel of the image, in place of the project's `update_channel`.",
    )
    branch: str | None = None
    commit_sha: str | None = None
    commit_message: str | None = None
    debug: bool | None = Field(default=None, description="Whether the runtime logs details.")
    target_deployment_id: int | None = Field(
        default=None,
        description="Roll back: take manifest and settings of this deployment, which succeeded. "
        "Nothing else may be given with it.",
    )


@router.post("/{projectId}/deployments", status_code=202)
async def create_deployment(
    project_id: ProjectId,
    caller: Annotated[Caller, needs("deployments:write")],
    body: NewDeployment = NewDeployment(),  # noqa: B008 - it does not change.
) -> dict[str, object]:
    """Deploy the manifest of a project, or roll back to an earlier deployment.

    Manifest and settings are a snapshot. 400 `manifest_missing` or `spicepod_paused` if there is
    nothing to run, 400 `unknown_image_tag` for an image that the installation does not have, and
    409 `deployment_in_progress` while a deployment is queued or in progress. The codes are ours.

    The manifest of a project that is connected to a repository is read there: at `commit_sha`, at
    the head of `branch`, or at that of its production branch.
    """
    fetched = await _fetch(caller, project_id, body)
    async with caller.change() as change:
        project = await finding.find_project(change.session, caller.org.id, project_id)
        row = await _create(change, caller, project, body, fetched)
        change.on("deployment", row.id, project.name, project_id=project.id)
    return view(row)


@router.get("/{projectId}/deployments")
async def list_deployments(
    project_id: ProjectId,
    caller: Annotated[Caller, needs("deployments:read")],
    page: Paged,
    status: Annotated[Status | None, Query(description="Only those with this status.")] = None,
) -> dict[str, object]:
    """List the deployments of a project, the newest first."""
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
        deployments = await records.list_deployments(
            session, project.id, status, page.limit, page.offset
        )
    return {"deployments": [view(each) for each in deployments]}


@router.get("/{projectId}/deployments/{deploymentId}")
async def get_deployment(
    project_id: ProjectId,
    deployment_id: DeploymentId,
    caller: Annotated[Caller, needs("deployments:read")],
    wait: Annotated[
        float,
        Query(
            ge=0,
            le=_LONGEST_WAIT_S,
            allow_inf_nan=False,
            description="Answer once status or error code change, after this many seconds at "
            "most. One that has ended is answered at once. Only in Caraway.",
        ),
    ] = 0,
) -> dict[str, object]:
    """Return a deployment."""
    row = await _read(caller, project_id, deployment_id)
    state = (row.status, row.error_code)
    try:
        async with asyncio.timeout(wait):
            while not records.progress_of(row).is_finished and wait:
                await asyncio.sleep(_LOOK_EVERY_S)
                row = await _read(caller, project_id, deployment_id)
                if (row.status, row.error_code) != state:
                    break
    except TimeoutError:
        pass
    return view(row)


@router.get("/{projectId}/deployments/{deploymentId}/logs")
async def get_deployment_logs(
    project_id: ProjectId,
    deployment_id: DeploymentId,
    caller: Annotated[Caller, needs("deployments:read")],
    limit: Annotated[int, Query(ge=1, le=1_000, description="At most this many lines.")] = 100,
    since: Annotated[
        datetime | None,
        Query(description="Lines from this time on, the first ones; without it, the last ones."),
    ] = None,
) -> dict[str, object]:
    """Return the log of a deployment: its states, and what hinders it."""
    if since is not None and since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    async with caller.services.database.read() as session:
        await _find(session, caller, project_id, deployment_id)
        lines = await records.read_log(session, deployment_id, since, limit)
    return {
        "logs": [
            {
                "timestamp": line.at.isoformat(),
                "level": line.level,
                "message": line.message,
                "source": line.source,
            }
            for line in lines
        ]
    }


def view(row: Deployment) -> dict[str, object]:
    """Return a deployment as JSON."""
    config = configs.show(row.config)
    return {
        "id": row.id,
        "status": row.status,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
        "started_at": _moment(row.started_at),
        "finished_at": _moment(row.finished_at),
        "image": config["image"],
        "image_tag": config["image_tag"],
        "replicas": config["replicas"],
        "branch": row.branch,
        "commit_sha": row.commit_sha,
        "commit_message": row.commit_message,
        "error_code": row.error_code,
        "error_message": row.error_message,
        "creation_source": row.creation_source,
        "created_by": row.created_by,
        "rollback_of": row.rollback_of,
    }


async def _create(
    change: Change,
    caller: Caller,
    project: Project,
    body: NewDeployment,
    fetched: Fetched | None,
) -> Deployment:
    given = body.model_dump(exclude_unset=True, exclude_none=True)
    limits = await accounts.read_plan(change.session, caller.org.plan)
    limiting.check_manifests(limits)
    target = given.pop("target_deployment_id", None)
    if target is not None:
        if given:
            raise refusals.invalid_field(
                min(given), "a rollback takes everything from its target; leave it out"
            )
        return await creating.roll_back(change.session, change.now, project, target, caller.actor)
    settings: dict[str, object] = {
        name: given[name] for name in ("image", "image_tag", "replicas") if name in given
    }
    if "channel" in given:
        settings["update_channel"] = given["channel"]
    config = configs.merge(project.config, settings, Allowance.from_plan(caller.org.plan, limits))
    platform = caller.services.platform
    _check_image(platform, config)
    config = platform.settings_of(config, project.region, project.cluster_name)
    commit = Commit(
        *(
            names.check_text(given[name], name, _LONGEST_TEXT) if name in given else None
            for name in ("branch", "commit_sha", "commit_message")
        )
    )
    manifest = None
    if fetched is not None:
        manifest = fetched.manifest
        branch = fetched.source.production_branch
        commit = Commit(branch, fetched.commit_sha, commit.message or fetched.commit_message)
    if given.get("debug"):
        # It is in the snapshot: a rollback to it logs details, too.
        text = project.manifest if manifest is None else manifest
        manifest = text and await asyncio.to_thread(manifests.with_details, text)
    return await creating.create_deployment(
        change.session, change.now, project, "api", caller.actor, config=config,
        manifest=manifest, commit=commit,
    )  # fmt: skip


async def _fetch(caller: Caller, project_id: int, body: NewDeployment) -> Fetched | None:
    """Return the manifest of a connected project. No transaction is open meanwhile."""
    if body.target_deployment_id is not None:
        return None
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
    source = repositories.source_of(project)
    if source is None or project.paused_at is not None:
        return None
    if body.branch is not None:
        source = replace(
            source, production_branch=project_rules.check_branch(body.branch, "branch")
        )
    return await repositories.fetch(source, caller.services.platform.git, body.commit_sha)


def _check_image(platform: Platform, config: dict[str, object]) -> None:
    """Check that the installation has the image, if it says which ones it has."""
    tag = config.get("image_tag")
    if tag is None or not platform.images:
        return
    name = config.get("image")
    tags = [each.tag for each in platform.images if name in (None, each.name)]
    if tag not in tags:
        raise refusals.invalid_field(
            "image_tag",
            f"there is no image with the tag '{tag}'; see GET /v1/container-images",
            "unknown_image_tag",
        )


async def _read(caller: Caller, project_id: int, deployment_id: int) -> Deployment:
    async with caller.services.database.read() as session:
        return await _find(session, caller, project_id, deployment_id)


async def _find(
    session: AsyncSession, caller: Caller, project_id: int, deployment_id: int
) -> Deployment:
    project = await finding.find_project(session, caller.org.id, project_id)
    return await records.find_deployment(session, project.id, deployment_id)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
