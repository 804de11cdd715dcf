"""Reads and writes rows of deployments."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import deployments, refusals
from caraway_management.domain.deployments import (
    UNFINISHED,
    Code,
    Observed,
    Problem,
    Progress,
    Status,
)
from caraway_management.store.tables import Deployment, DeploymentLog, Project

SOURCE = "deployment"
_LONGEST_LINE = 2_000
_MOST_ID = 2**63 - 1


async def find_deployment(session: AsyncSession, project_id: int, id_: int) -> Deployment:
    """Return a deployment of a project.

    Raises:
        RefusedError: the project has no such deployment.
    """
    if 1 <= id_ <= _MOST_ID:
        deployment = await session.get(Deployment, id_)
        if deployment is not None and deployment.project_id == project_id:
            return deployment
    raise refusals.not_found("deployment", id_)


async def list_deployments(
    session: AsyncSession, project_id: int, status: Status | None, limit: int, offset: int
) -> Sequence[Deployment]:
    """Return a page of the deployments of a project, the newest first."""
    query = select(Deployment).where(Deployment.project_id == project_id)
    if status is not None:
        query = query.where(Deployment.status == status)
    query = query.order_by(Deployment.id.desc()).limit(limit).offset(offset)
    return (await session.scalars(query)).all()


async def read_log(
    session: AsyncSession, deployment_id: int, since: datetime | None, limit: int
) -> Sequence[DeploymentLog]:
    """Return lines of the log of a deployment: with `since` the first from then on, or the last."""
    query = select(DeploymentLog).where(DeploymentLog.deployment_id == deployment_id)
    if since is not None:
        query = query.where(DeploymentLog.at >= since).order_by(DeploymentLog.id).limit(limit)
        return (await session.scalars(query)).all()
    query = query.order_by(DeploymentLog.id.desc()).limit(limit)
    return (await session.scalars(query)).all()[::-1]


async def unfinished_of(session: AsyncSession, project_id: int) -> Deployment | None:
    """Return the deployment of a project that is queued or in progress."""
    query = (
        select(Deployment)
        .where(Deployment.project_id == project_id, Deployment.status.in_(UNFINISHED))
        .order_by(Deployment.id.desc())
        .limit(1)
    )
    deployment: Deployment | None = await session.scalar(query)
    return deployment


async def supersede(session: AsyncSession, now: datetime, project_id: int, reason: str) -> None:
    """End the deployment of a project that is under way, because something newer replaces it."""
    deployment = await unfinished_of(session, project_id)
    if deployment is not None:
        write(session, now, deployment, deployments.supersede(progress_of(deployment), now), reason)
        await session.flush()


def judge(
    session: AsyncSession, now: datetime, project: Project, row: Deployment, seen: Observed
) -> Progress:
    """Record the observed state of the runtime of a deployment; return its progress."""
    before = progress_of(row)
    after = deployments.judge(before, row.id, seen, now)
    if after.status is Status.SUCCEEDED and before.status is not Status.SUCCEEDED:
        project.deployed_id = row.id
    if after.status is Status.SUCCEEDED:
        project.endpoint, project.flight_endpoint = seen.endpoint, seen.flight_endpoint
    write(session, now, row, after)
    return after


def fail(session: AsyncSession, now: datetime, row: Deployment, problem: Problem) -> None:
    """Record that a deployment under way has failed."""
    before = progress_of(row)
    if not before.is_finished:
        write(session, now, row, Progress(Status.FAILED, problem, before.started_at, now))


def progress_of(row: Deployment) -> Progress:
    """Return how far a deployment is."""
    problem = None
    if row.error_code is not None:
        problem = Problem(Code(row.error_code), row.error_message or "")
    return Progress(Status(row.status), problem, row.started_at, row.finished_at)


def write(
    session: AsyncSession, now: datetime, row: Deployment, progress: Progress, reason: str = ""
) -> None:
    """Record the progress of a deployment, and what has changed in its log."""
    before = progress_of(row)
    if progress == before:
        return
    problem = progress.problem
    row.status = progress.status
    row.error_code = problem.code if problem else None
    row.error_message = problem.message if problem else None
    row.started_at, row.finished_at = progress.started_at, progress.finished_at
    row.updated_at = now
    if progress.status != before.status:
        text = f"{progress.status}: {reason}" if reason else str(progress.status)
        add_line(session, now, row.id, text)
    if problem is not None and problem != before.problem:
        level = "warning" if problem.code.is_retriable else "error"
        add_line(session, now, row.id, f"{problem.code}: {problem.message}", level)


def add_line(
    session: AsyncSession, now: datetime, deployment_id: int, message: str, level: str = "info"
) -> None:
    """Add to the log of a deployment, one line for each line of the message."""
    for line in message.splitlines():
        session.add(
            DeploymentLog(
                deployment_id=deployment_id, at=now, level=level, source=SOURCE,
                message=line[:_LONGEST_LINE],
            )
        )  # fmt: skip
