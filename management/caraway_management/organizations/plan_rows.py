"""Lists, writes and deletes plans."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import plans, refusals
from caraway_management.store.tables import Org, PlanRow

MOST_PLANS = 100


async def list_plans(session: AsyncSession) -> Sequence[PlanRow]:
    """Return all plans, by name."""
    return (await session.scalars(select(PlanRow).order_by(PlanRow.name))).all()


async def find(session: AsyncSession, name: str, *, locks: bool = False) -> PlanRow:
    """Return a plan.

    Raises:
        RefusedError: there is none of this name.
    """
    query = select(PlanRow).where(PlanRow.name == name)
    found = None
    if plans.is_name(name):
        found = await session.scalar(query.with_for_update() if locks else query)
    if found is None:
        raise refusals.not_found("plan", name)
    return found


async def lock(session: AsyncSession, name: str) -> int | None:
    """Return the revision of a plan that is to change, or None if there is none of this name."""
    query = select(PlanRow.revision).where(PlanRow.name == name).with_for_update()
    return await session.scalar(query) if plans.is_name(name) else None


async def write(
    session: AsyncSession, now: datetime, name: str, limits: Mapping[str, object]
) -> PlanRow:
    """Change limits of a plan, or make a plan with all of them.

    Raises:
        RefusedError: a limit is wrong or missing, or the name is.
    """
    if not plans.is_name(name):
        raise refusals.invalid_field("name", "use 1 to 63 lower-case letters, digits, '-' or '_'")
    row = await session.scalar(select(PlanRow).where(PlanRow.name == name).with_for_update())
    if row is not None:
        row.limits = plans.read_limits(limits, plans.read_limits(row.limits)).as_json()
        row.revision += 1
        row.updated_at = now
        return row
    if len(await list_plans(session)) >= MOST_PLANS:
        raise refusals.conflict(f"an installation has at most {MOST_PLANS} plans")
    row = PlanRow(
        name=name, limits=plans.read_limits(limits).as_json(), revision=1,
        updated_at=now,
    )  # fmt: skip
    try:
        async with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # Another request made it meanwhile: this one changes it.
        return await write(session, now, name, limits)
    return row


async def delete(session: AsyncSession, name: str) -> None:
    """Delete a plan that no organization has.

    Raises:
        RefusedError: there is none of this name, or it is in use.
    """
    row = await find(session, name, locks=True)
    if name == plans.DEFAULT_PLAN:
        raise refusals.conflict(f"'{name}' is the plan of new organizations")
    if await session.scalar(select(Org.id).where(Org.plan == name).limit(1)) is not None:
        raise refusals.conflict(f"organizations have the plan '{name}'; give them another one")
    await session.delete(row)
    await session.flush()
