"""Finds projects of an organization."""

from collections.abc import Sequence

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import refusals
from caraway_management.store.tables import Project

MOST_ID = 2**63 - 1


async def find_project(
    session: AsyncSession, org_id: int, project_id: int, *, locks: bool = False
) -> Project:
    """Return a project of an organization.

    With `locks`, other changes of the project wait until this transaction ends.

    Raises:
        RefusedError: it does not exist, is deleted, or belongs to another organization.
    """
    if 1 <= project_id <= MOST_ID:
        query = _present(org_id).where(Project.id == project_id)
        found = await session.scalar(query.with_for_update() if locks else query)
        if found is not None:
            return found
    raise refusals.not_found("project", project_id)


async def list_projects(
    session: AsyncSession, org_id: int, limit: int, offset: int
) -> Sequence[Project]:
    """Return a page of the projects of an organization, the oldest first."""
    query = _present(org_id).order_by(Project.id).limit(limit).offset(offset)
    return (await session.scalars(query)).all()


async def lock_all(session: AsyncSession, org_id: int) -> Sequence[Project]:
    """Return all projects of an organization; other changes of them wait."""
    return (await session.scalars(_present(org_id).with_for_update())).all()


def _present(org_id: int) -> Select[Project]:
    return select(Project).where(Project.org_id == org_id, Project.deleted_at.is_(None))
