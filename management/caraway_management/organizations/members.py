"""Lists, adds, changes and removes members of an organization."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.domain import memberships, names, plans, refusals
from caraway_management.domain.identity import Access
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Invitation, Member, Org, User


@dataclass(frozen=True, slots=True)
class Membership:
    """A member, with the name of the user."""

    row: Member
    username: str

    @property
    def role(self) -> Role:
        """The role of the member."""
        return Role(self.row.role)


async def list_members(
    session: AsyncSession, org_id: int, limit: int, offset: int
) -> Sequence[Membership]:
    """Return a page of the members, in the order in which they joined."""
    query = (
        select(Member, User.username)
        .join(User, User.id == Member.user_id)
        .where(Member.org_id == org_id)
        .order_by(Member.created_at, Member.user_id)
    )
    result = await session.execute(query.limit(limit).offset(offset))
    return [Membership(member, username) for member, username in result]


async def find(
    session: AsyncSession, org_id: int, user_id: int, *, locks: bool = False
) -> Membership:
    """Return a member; with `locks` the members of the organization change one after another.

    Raises:
        RefusedError: the user is none.
    """
    if locks:
        await lock(session, org_id)
    query = select(Member, User.username).join(User, User.id == Member.user_id)
    found = (
        await session.execute(query.where(Member.org_id == org_id, Member.user_id == user_id))
    ).one_or_none()
    if found is None:
        raise refusals.not_found("member", user_id)
    return Membership(*found)


async def add(
    session: AsyncSession, now: datetime, access: Access, username: str, role: Role
) -> Membership:
    """Make a user a member.

    Raises:
        RefusedError: the user does not exist, is a member already, or the plan has no place.
    """
    memberships.check_given(access, role)
    org = await lock(session, access.org.id)
    user = None
    if names.is_user(username):
        query = select(User).where(User.username_key == names.key(username))
        user = await session.scalar(query.where(User.deleted_at.is_(None)))
    if user is None:
        raise refusals.not_found("user", username)
    return await join(session, now, org, user, role)


async def join(
    session: AsyncSession, now: datetime, org: Org, user: User, role: Role
) -> Membership:
    """Make a user a member of a locked organization.

    Raises:
        RefusedError: the user is a member already, or the plan has no place.
    """
    if await session.get(Member, (org.id, user.id)) is not None:
        raise refusals.conflict(f"'{user.username}' is a member already")
    await check_places(session, org, await count(session, org.id) + 1)
    member = Member(org_id=org.id, user_id=user.id, role=role, created_at=now)
    session.add(member)
    if user.home_org_id is None:
        user.home_org_id = org.id
    try:
        await session.flush()
    except IntegrityError as exc:
        raise refusals.conflict(f"'{user.username}' is a member already") from exc
    return Membership(member, user.username)


async def change(session: AsyncSession, access: Access, found: Membership, role: Role) -> None:
    """Give a member, who was found with `locks`, another role.

    Raises:
        RefusedError: the caller may not give or take the role.
    """
    memberships.check_changed(access, found.row.user_id, found.role)
    memberships.check_given(access, role)
    if role is not Role.OWNER:
        await _check_owners(session, found)
    found.row.role = role
    found.row.revision += 1


async def remove(session: AsyncSession, access: Access, found: Membership) -> None:
    """Remove a member, who was found with `locks`.

    Raises:
        RefusedError: the caller may not remove them.
    """
    user_id = found.row.user_id
    memberships.check_changed(access, user_id, found.role)
    await _check_owners(session, found)
    await session.delete(found.row)
    await session.flush()
    user = await session.get_one(User, user_id)
    if user.home_org_id == access.org.id:
        others = select(Member.org_id).join(Org, Org.id == Member.org_id)
        present = others.where(Member.user_id == user_id, Org.deleted_at.is_(None))
        user.home_org_id = await session.scalar(present.order_by(Member.org_id).limit(1))


async def lock(session: AsyncSession, org_id: int) -> Org:
    """Return an organization whose members change, one change at a time."""
    return await session.get_one(Org, org_id, with_for_update=True)


async def count(session: AsyncSession, org_id: int) -> int:
    """Return the number of members."""
    query = select(func.count()).select_from(Member).where(Member.org_id == org_id)
    return await session.scalar(query) or 0


async def count_invitations(session: AsyncSession, org_id: int, now: datetime) -> int:
    """Return the number of open invitations."""
    query = select(func.count()).select_from(Invitation)
    return await session.scalar(query.where(*are_open(org_id, now))) or 0


def are_open(org_id: int, now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of the open invitations of an organization."""
    return (
        Invitation.org_id == org_id,
        Invitation.accepted_at.is_(None),
        Invitation.revoked_at.is_(None),
        Invitation.expires_at > now,
    )


async def check_places(session: AsyncSession, org: Org, members: int) -> None:
    """Check that the plan of an organization has places for its members.

    Raises:
        RefusedError: it has not.
    """
    most = (await accounts.read_plan(session, org.plan)).users
    if plans.is_exceeded(most, members):
        raise refusals.over_limit(
            f"the plan '{org.plan}' allows {most} members, open invitations included"
        )


async def _check_owners(session: AsyncSession, membership: Membership) -> None:
    query = select(func.count()).select_from(Member)
    others = await session.scalar(
        query.where(
            Member.org_id == membership.row.org_id,
            Member.role == Role.OWNER,
            Member.user_id != membership.row.user_id,
        )
    )
    memberships.check_owners(membership.role, others or 0)
