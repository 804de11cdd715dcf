"""Creates, changes, pauses, resumes, deletes and revives projects."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import configs, limiting, names, project_rules, refusals
from caraway_management.domain.configs import Allowance
from caraway_management.domain.identity import Organization
from caraway_management.domain.plans import UNLIMITED
from caraway_management.domain.platform import Platform
from caraway_management.domain.refusals import RefusedError
from caraway_management.store.tables import Project


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """The organization in which a project changes, with its plan, its platform and the time."""

    org: Organization
    allowance: Allowance
    platform: Platform
    now: datetime


async def create(
    session: AsyncSession, around: ProjectContext, name: str, settings: Mapping[str, object]
) -> Project:
    """Create a project, or revive the deleted one of this name.

    A revived project has its id, its name and its settings again, except those that `settings`
    names. It is not paused, and nothing of it runs.

    Raises:
        RefusedError: there is one of this name, a setting is wrong, or the plan allows no more.
    """
    project = await _find_deleted(session, around.org.id, name)
    await check_number(session, around)
    if project is None:
        project = Project(
            org_id=around.org.id, name=name, name_key=names.key(names.check_project(name)),
            description="", visibility=project_rules.VISIBILITIES[0], tags={}, config={},
            revision=0, created_at=around.now, updated_at=around.now,
        )  # fmt: skip
        session.add(project)
    project.deleted_at = project.paused_at = None
    project.region = project.cluster_name = None
    update(around, project, settings)
    try:
        await session.flush()
    except IntegrityError as exc:
        # Another request was faster.
        raise name_taken(name) from exc
    return project


async def check_number(session: AsyncSession, around: ProjectContext) -> None:
    """Check that the organization may have another project. It must be locked.

    Raises:
        RefusedError: its plan allows no more.
    """
    limits = around.allowance.limits
    if limits.apps == UNLIMITED:
        return
    limiting.check_apps(limits, await count(session, around.org.id))


async def count(session: AsyncSession, org_id: int) -> int:
    """Return the number of projects of an organization."""
    present = select(func.count()).where(Project.org_id == org_id, Project.deleted_at.is_(None))
    return await session.scalar(present) or 0


def update(around: ProjectContext, project: Project, changes: Mapping[str, Any]) -> None:
    """Change settings of a project; None sets one back to its default.

    Raises:
        RefusedError: one of them is wrong, or not in the plan.
    """
    if "manifest" in changes:
        if project.repository is not None:
            raise refusals.conflict(
                "the manifest comes from the connected repository; change it there, or disconnect "
                "the repository",
                "github_connected",
            )
        if changes["manifest"] is not None:
            limiting.check_manifests(around.allowance.limits)
        project.manifest = changes["manifest"]
    if {"region", "cluster_name"} & set(changes):
        _place(around, project, changes)
    if "description" in changes:
        project.description = project_rules.check_description(changes["description"] or "")
    if "visibility" in changes:
        project.visibility = changes["visibility"] or project_rules.VISIBILITIES[0]
    if "production_branch" in changes:
        branch = changes["production_branch"]
        project.production_branch = project_rules.check_branch(branch) if branch else None
    if "tags" in changes:
        project.tags = project_rules.check_tags(changes["tags"] or {})
    settings = {name: changes[name] for name in configs.FIELDS if name in changes}
    project.config = configs.merge(project.config, settings, around.allowance)
    touch(project, around.now)


def delete(project: Project, now: datetime) -> None:
    """Delete a project. Its row stays, so that it can be revived."""
    project.deleted_at = now
    project.endpoint = project.flight_endpoint = None
    touch(project, now)


def touch(project: Project, now: datetime) -> None:
    """Note that a project changed."""
    project.revision += 1
    project.updated_at = now


def check_revision(project: Project, revision: int | None) -> None:
    """Check that a project is still what the caller has read.

    Raises:
        RefusedError: it has changed since.
    """
    if revision is not None and revision != project.revision:
        raise refusals.conflict(
            f"the project changed since revision {revision}; read it and try again",
            "project_changed",
        )


def name_taken(name: str) -> RefusedError:
    """Return the refusal of a name that another project has."""
    return refusals.conflict(f'App "{name}" already exists in this organization')


async def _find_deleted(session: AsyncSession, org_id: int, name: str) -> Project | None:
    key = names.key(names.check_project(name))
    query = select(Project).where(Project.org_id == org_id, Project.name_key == key)
    project = await session.scalar(query.with_for_update())
    if project is not None and project.deleted_at is None:
        raise name_taken(name)
    return project


def _place(around: ProjectContext, project: Project, changes: Mapping[str, Any]) -> None:
    cluster = changes.get("cluster_name", project.cluster_name)
    # A cluster brings its own region.
    kept = None if changes.get("cluster_name") else project.region
    region = changes.get("region", kept)
    project.region, project.cluster_name = around.platform.check_placement(
        region, cluster, around.org.name
    )


def pause(project: Project, now: datetime) -> None:
    """Pause a project.

    Raises:
        RefusedError: it is paused.
    """
    if project.paused_at is not None:
        raise refusals.conflict("the project is paused already", "project_paused")
    project.paused_at = now
    touch(project, now)


def resume(project: Project, now: datetime) -> None:
    """Resume a project. It runs with the next deployment.

    Raises:
        RefusedError: it is not paused.
    """
    if project.paused_at is None:
        raise refusals.conflict("the project is not paused", "project_not_paused")
    project.paused_at = None
    touch(project, now)
