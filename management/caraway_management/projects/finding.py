"""Finds projects of an organization."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, case, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import refusals
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import Project

MOST_ID = 2**63 - 1
MOST_LISTED = 32 * 1024
"""The characters of a manifest in a list; a longer one is left out."""
ProjectRow = Any
"""The columns of a project, by the names of its attributes."""


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
        project = await session.scalar(query.with_for_update() if locks else query)
        if project is not None:
            return project
    raise refusals.not_found("project", project_id)


async def read_project(session: AsyncSession, org_id: int, project_id: int) -> ProjectRow:
    """Return the columns of a project of an organization.

    Raises:
        RefusedError: it does not exist, is deleted, or belongs to another organization.
    """
    if 1 <= project_id <= MOST_ID:
        found = await _BY_ID.one_or_none(session, org_id=org_id, id=project_id)
        if found is not None:
            return found
    raise refusals.not_found("project", project_id)


async def list_projects(
    session: AsyncSession, org_id: int, limit: int, offset: int
) -> Sequence[ProjectRow]:
    """Return the columns of a page of the projects of an organization, the oldest first."""
    if not offset:
        return await _FIRST.rows(session, org_id=org_id, limit=limit)
    return await _PAGE.rows(session, org_id=org_id, limit=limit, offset=offset)


async def lock_all(session: AsyncSession, org_id: int) -> Sequence[Project]:
    """Return all projects of an organization; other changes of them wait."""
    return (await session.scalars(_present(org_id).with_for_update())).all()


def _present(org_id: object) -> Select[Project]:
    return select(Project).where(Project.org_id == org_id, Project.deleted_at.is_(None))


_ALL = _present(bindparam("org_id")).with_only_columns(*Project.__table__.columns)
_BY_ID = Lookup(_ALL.where(Project.id == bindparam("id")))
_IS_LONG = func.length(Project.manifest) > MOST_LISTED
LISTED = (
    *(each for each in Project.__table__.columns if each.key != "manifest"),
    case((_IS_LONG, None), else_=Project.manifest).label("manifest"),
    _IS_LONG.label("is_manifest_left_out"),
)
"""The columns of projects in lists. A page has at most 100 manifests."""
_LISTED = _ALL.with_only_columns(*LISTED)
_FIRST = Lookup(_LISTED.order_by(Project.id).limit(bindparam("limit")))
# Rows that are left out are only counted, in an index.
_PAGE = Lookup(
    _LISTED.where(
        Project.id
        >= _ALL.with_only_columns(Project.id)
        .order_by(Project.id)
        .limit(1)
        .offset(bindparam("offset"))
        .scalar_subquery()
    )
    .order_by(Project.id)
    .limit(bindparam("limit"))
)
