"""Reads the samples of projects."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain.monitoring import Sample
from caraway_management.domain.samples import with_limits
from caraway_management.store.tables import MetricSample, Project

_RECENT = timedelta(minutes=5)


async def of_project(
    session: AsyncSession, project: Project, since: datetime, until: datetime
) -> Sequence[Sample]:
    """Return the samples of a project in a time, the oldest first."""
    query = (
        select(MetricSample.at, MetricSample.values)
        .where(MetricSample.project_id == project.id)
        .where(MetricSample.at >= since, MetricSample.at <= until)
        .order_by(MetricSample.at)
    )
    rows = await session.execute(query)
    return [Sample(at, with_limits(values, project.config)) for at, values in rows]


async def latest_of_org(
    session: AsyncSession, org_id: int, now: datetime
) -> Sequence[tuple[int, str, Sample]]:
    """Return id, name and last sample of each project of an organization that has a recent one."""
    newest = (
        select(func.max(MetricSample.id))
        .join(Project, Project.id == MetricSample.project_id)
        .where(Project.org_id == org_id, Project.deleted_at.is_(None))
        .where(MetricSample.at >= now - _RECENT)
        .group_by(MetricSample.project_id)
    )
    query = (
        select(Project.id, Project.name, Project.config, MetricSample.at, MetricSample.values)
        .join(Project, Project.id == MetricSample.project_id)
        .where(MetricSample.id.in_(newest))
        .order_by(Project.id)
    )
    return [
        (id_, name, Sample(at, with_limits(values, config)))
        for id_, name, config, at, values in await session.execute(query)
    ]
