"""Brings changed limits to the runtimes of all projects that they apply to."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import outbox
from caraway_management.deployments import applying
from caraway_management.domain.deployments import Status
from caraway_management.outbox import Entry, Handler
from caraway_management.services import Services
from caraway_management.store.tables import Deployment, Org, Project

KIND = "apply limits"
_PAGE = 200


async def plan_changed(session: AsyncSession, now: datetime, plan: str) -> None:
    """Have the new limits of a plan applied, in the transaction that changes them."""
    await outbox.enqueue(session, now, KIND, f"plan:{plan}", {"plan": plan})


async def organization_changed(session: AsyncSession, now: datetime, org_id: int) -> None:
    """Have the limits of the new plan of an organization applied, in the same transaction."""
    await outbox.enqueue(session, now, KIND, f"org:{org_id}", {"org_id": org_id})


class LimitWork:
    """The handler of the entries that changed limits cause."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by the kinds of entries."""
        return {KIND: self.apply}

    async def apply(self, entry: Entry) -> None:
        """Apply every project again that the limits apply to; a page in each transaction."""
        last = 0
        while True:
            async with self._services.database.change() as session:
                ids = await _page(session, entry.payload, last)
                for id_ in ids:
                    await applying.apply_project(session, self._services.now(), id_)
            if len(ids) < _PAGE:
                return
            last = ids[-1]


async def _page(session: AsyncSession, payload: Mapping[str, object], last: int) -> list[int]:
    """Return the next projects that have a runtime, or are to have one."""
    under_way = select(Deployment.project_id).where(
        Deployment.status.in_([Status.QUEUED, Status.IN_PROGRESS])
    )
    query = (
        select(Project.id)
        .where(Project.id > last, Project.deleted_at.is_(None), Project.paused_at.is_(None))
        .where(or_(Project.deployed_id.is_not(None), Project.id.in_(under_way)))
        .order_by(Project.id)
        .limit(_PAGE)
    )
    if "org_id" in payload:
        query = query.where(Project.org_id == payload["org_id"])
    else:
        query = query.join(Org, Org.id == Project.org_id).where(Org.plan == payload["plan"])
    return list(await session.scalars(query))
