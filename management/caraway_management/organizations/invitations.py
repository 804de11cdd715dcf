"""Makes, lists, revokes and accepts invitations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import memberships, refusals
from caraway_management.domain.identity import Access, Credential
from caraway_management.domain.scopes import Role
from caraway_management.organizations import members
from caraway_management.organizations.members import Membership
from caraway_management.store.tables import Invitation, Org, User


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """An invitation, with the value that is shown once."""

    row: Invitation
    value: str


async def make(
    session: AsyncSession, now: datetime, access: Access, email: str, role: Role
) -> NewInvitation:
    """Invite a person. The value is for the sender to hand on.

    Raises:
        RefusedError: the caller may not give the role, the address is wrong or has an open
            invitation, or the plan has no place.
    """
    memberships.check_given(access, role)
    org = await members.lock(session, access.org.id)
    open_ones = members.are_open(org.id, now)
    same = func.lower(Invitation.email) == memberships.check_email(email).lower()
    if await session.scalar(select(Invitation.id).where(*open_ones, same).limit(1)) is not None:
        raise refusals.conflict(f"'{email}' has an open invitation; revoke it first")
    invited = await members.count_invitations(session, org.id, now) + 1
    if invited > memberships.MOST_INVITATIONS:
        most = memberships.MOST_INVITATIONS
        raise refusals.over_limit(f"an organization has at most {most} open invitations")
    await members.check_places(session, org, await members.count(session, org.id) + invited)
    value = values.make(Prefix.INVITATION)
    row = Invitation(
        org_id=org.id, email=email, role=role, value_hash=values.digest(value),
        invited_by=access.credential.user_id or 0, created_at=now,
        expires_at=now + memberships.INVITATION_LIFETIME,
    )  # fmt: skip
    session.add(row)
    await session.flush()
    return NewInvitation(row, value)


async def list_open(
    session: AsyncSession, now: datetime, org_id: int, limit: int, offset: int
) -> Sequence[Invitation]:
    """Return a page of the open invitations, the oldest first."""
    query = select(Invitation).where(*members.are_open(org_id, now)).order_by(Invitation.id)
    return (await session.scalars(query.limit(limit).offset(offset))).all()


async def revoke(session: AsyncSession, now: datetime, org_id: int, id_: int) -> Invitation:
    """Revoke an open invitation.

    Raises:
        RefusedError: there is none with this id.
    """
    await members.lock(session, org_id)
    query = select(Invitation).where(*members.are_open(org_id, now), Invitation.id == id_)
    invitation = await session.scalar(query)
    if invitation is None:
        raise refusals.not_found("invitation", id_)
    invitation.revoked_at = now
    return invitation


async def look(session: AsyncSession, now: datetime, value: str) -> tuple[Invitation, Org]:
    """Return an open invitation, and the organization that it is to.

    Raises:
        RefusedError: the value is of no invitation, or it is used, revoked or expired.
    """
    invitation = await _find(session, value)
    if invitation is None:
        raise refusals.not_found("invitation")
    org = await session.get_one(Org, invitation.org_id)
    _check_open(invitation, org, now)
    return invitation, org


async def accept(
    session: AsyncSession, now: datetime, credential: Credential, value: str
) -> tuple[Org, Membership]:
    """Make the user of a credential a member.

    Raises:
        RefusedError: the value is of no invitation, or it is used, revoked or expired; or the
            credential acts for no user or only for another organization.
    """
    if credential.user_id is None:
        raise refusals.forbidden("an invitation is for a user; sign in as one")
    invitation = await _find(session, value)
    if invitation is None or credential.org_id not in (None, invitation.org_id):
        raise refusals.not_found("invitation")
    org = await members.lock(session, invitation.org_id)
    await session.refresh(invitation)
    _check_open(invitation, org, now)
    user = await session.get_one(User, credential.user_id)
    membership = await members.join(session, now, org, user, Role(invitation.role))
    invitation.accepted_at = now
    return org, membership


async def _find(session: AsyncSession, value: str) -> Invitation | None:
    if not values.is_well_formed(value, Prefix.INVITATION):
        return None
    query = select(Invitation).where(Invitation.value_hash == values.digest(value))
    return await session.scalar(query)


def _check_open(invitation: Invitation, org: Org, now: datetime) -> None:
    if org.deleted_at is not None:
        raise refusals.forbidden("the organization is deleted", "org_deleted")
    if invitation.accepted_at or invitation.revoked_at or invitation.expires_at <= now:
        raise _gone(invitation)


def _gone(invitation: Invitation) -> refusals.RefusedError:
    state = "accepted" if invitation.accepted_at else "revoked" if invitation.revoked_at else ""
    words = f"has been {state}" if state else "is expired"
    return refusals.RefusedError(410, f"the invitation {words}; ask for another one")
