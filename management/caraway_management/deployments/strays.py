"""Compares the runtimes that are there with the projects of the database.

They are different after the restore of an earlier database: projects that were made since have a
runtime and no record, and those that were deleted since have a record and no runtime.
"""

import logging

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.deployments import applying
from caraway_management.services import Services
from caraway_management.store.tables import Project

logger = logging.getLogger(__name__)


async def find(session: AsyncSession, there: set[int]) -> list[int]:
    """Return which of the ids of runtimes are of no project. Nothing removes them by itself."""
    return sorted(there - set(await session.scalars(select(Project.id))))


async def reconcile(services: Services) -> None:
    """Deploy what has a record and no runtime, and report what has a runtime and no record."""
    there = await services.deployer.project_ids()
    async with services.database.change() as session:
        wanted = select(Project.id).where(
            Project.deleted_at.is_(None), Project.paused_at.is_(None),
            Project.deployed_id.is_not(None),
        )  # fmt: skip
        for project_id in await session.scalars(wanted.order_by(Project.id)):
            if project_id not in there:
                await applying.apply_project(session, services.now(), project_id)
        strays = await find(session, there)
    if strays:
        logger.error(
            "there are runtimes of projects that the database does not know, as after the restore "
            "of an earlier one; see them with `caraway management strays`",
            extra={"projects": strays[:100]},
        )
