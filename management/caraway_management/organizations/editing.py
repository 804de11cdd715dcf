"""Finds, creates, renames and deletes organizations."""

from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.domain import names, refusals
from caraway_management.domain.scopes import Role
from caraway_management.organizations import plan_rows
from caraway_management.store.tables import Invitation, Member, Org, User

MOST_OWNED = 100


async def create(session: AsyncSession, now: datetime, name: str, user_id: int) -> Org:
    """Create an organization with its owner and the default plan.

    Raises:
        RefusedError: the name is taken or wrong, or the user owns too many already.
    """
    user = await session.get_one(User, user_id, with_for_update=True)
    query = select(func.count()).select_from(Member).join(Org, Org.id == Member.org_id)
    owned = await session.scalar(
        query.where(Member.user_id == user_id, Member.role == Role.OWNER, Org.deleted_at.is_(None))
    )
    if (owned or 0) >= MOST_OWNED:
        raise refusals.over_limit(f"a user owns at most {MOST_OWNED} organizations")
    try:
        return await accounts.add_organization(session, now, name, user)
    except IntegrityError as exc:
        raise _taken(name) from exc


async def find(session: AsyncSession, org_id: int, *, reads: bool = False) -> Org:
    """Return an organization that changes, or with `reads` one that must not change meanwhile.

    Raises:
        RefusedError: it is deleted, or does not exist.
    """
    org = await session.scalar(select(Org).where(Org.id == org_id).with_for_update(read=reads))
    if org is None:
        raise refusals.not_found("organization", org_id)
    if org.deleted_at is not None:
        raise refusals.forbidden("the organization is deleted", "org_deleted")
    return org


async def rename(session: AsyncSession, org: Org, name: str) -> None:
    """Change the handle of an organization.

    Raises:
        RefusedError: it is wrong, or another organization has it, or had it.
    """
    key = names.key(names.check_handle(name))
    taken = select(Org.id).where(Org.name_key == key, Org.id != org.id)
    if await session.scalar(taken) is not None:
        raise _taken(name)
    org.name, org.name_key = name, key
    org.revision += 1
    try:
        await session.flush()
    except IntegrityError as exc:
        raise _taken(name) from exc


async def set_plan(session: AsyncSession, org: Org, plan: str) -> None:
    """Set the plan of an organization.

    Raises:
        RefusedError: there is no such plan.
    """
    # Locked, so that the plan is not deleted meanwhile.
    org.plan = (await plan_rows.find(session, plan, locks=True)).name
    org.revision += 1


async def delete(session: AsyncSession, org: Org, now: datetime) -> None:
    """Delete an organization. It keeps its name, and its credentials are refused from then on."""
    org.deleted_at = now
    org.revision += 1
    open_ones = (
        Invitation.org_id == org.id,
        Invitation.accepted_at.is_(None),
        Invitation.revoked_at.is_(None),
    )
    await session.execute(update(Invitation).where(*open_ones).values(revoked_at=now))
    await session.execute(update(User).where(User.home_org_id == org.id).values(home_org_id=None))


def _taken(name: str) -> refusals.RefusedError:
    return refusals.conflict(f"Organization '{name}' already exists")
