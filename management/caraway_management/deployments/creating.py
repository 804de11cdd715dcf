"""Creates deployments."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.deployments import applying, records
from caraway_management.domain import refusals
from caraway_management.domain.deployments import Status
from caraway_management.store.tables import Deployment, Project

ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Commit:
    """Where the manifest of a deployment comes from."""

    branch: str | None = None
    sha: str | None = None
    message: str | None = None


async def create_deployment(
    session: AsyncSession,
    now: datetime,
    project: Project,
    source: str,
    by: str,
    *,
    config: Mapping[str, object] | None = None,
    manifest: str | None = None,
    commit: Commit = Commit(),
    supersedes: bool = False,
) -> Deployment:
    """Create a deployment of a project's manifest; its runtime follows.

    Manifest and config are a snapshot: what changes later belongs to the next deployment. With
    `config` or `manifest` they are those in place of the project's. With `supersedes` a deployment
    that is under way ends as `created`.

    Raises:
        RefusedError: the project has no manifest, is paused, or a deployment is under way.
    """
    if manifest is None:
        manifest = project.manifest
    if manifest is None:
        raise refusals.invalid(
            "the project has no manifest; set `manifest` of the project first", "manifest_missing"
        )
    await _check(session, now, project, supersedes)
    return await _add(
        session,
        Deployment(
            org_id=project.org_id, project_id=project.id, status=Status.QUEUED,
            manifest=manifest, config=dict(project.config if config is None else config),
            branch=commit.branch, commit_sha=commit.sha, commit_message=commit.message,
            creation_source=source, created_by=by, created_at=now, updated_at=now,
        ),
    )  # fmt: skip


async def roll_back(
    session: AsyncSession, now: datetime, project: Project, target_id: int, by: str
) -> Deployment:
    """Create a deployment with manifest and config of an earlier one that succeeded.

    Raises:
        RefusedError: there is none, the project is paused, or a deployment is under way.
    """
    target = await records.find_deployment(session, project.id, target_id)
    if target.status != Status.SUCCEEDED:
        raise refusals.invalid_field(
            "target_deployment_id", f"deployment {target_id} is {target.status}, not succeeded"
        )
    await _check(session, now, project, supersedes=False)
    return await _add(
        session,
        Deployment(
            org_id=project.org_id, project_id=project.id, status=Status.QUEUED,
            manifest=target.manifest, config=target.config, branch=target.branch,
            commit_sha=target.commit_sha, commit_message=target.commit_message,
            rollback_of=target.id, creation_source=ROLLBACK, created_by=by,
            created_at=now, updated_at=now,
        ),
    )  # fmt: skip


async def _check(session: AsyncSession, now: datetime, project: Project, supersedes: bool) -> None:
    # Of two requests at once, the second sees the deployment of the first.
    await session.execute(select(Project.id).where(Project.id == project.id).with_for_update())
    await session.refresh(project, ["paused_at"])
    if project.paused_at is not None:
        raise refusals.invalid("the project is paused; resume it first", "spicepod_paused")
    deployment = await records.unfinished_of(session, project.id)
    if deployment is None:
        return
    if not supersedes:
        raise refusals.conflict(
            f"deployment {deployment.id} is {deployment.status}; wait until it has ended",
            "deployment_in_progress",
        )
    await records.supersede(session, now, project.id, "a newer deployment replaces it")


async def _add(session: AsyncSession, deployment: Deployment) -> Deployment:
    session.add(deployment)
    await session.flush()
    records.add_line(session, deployment.created_at, deployment.id, str(Status.QUEUED))
    await applying.apply_project(session, deployment.created_at, deployment.project_id)
    return deployment
