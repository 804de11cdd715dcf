"""Sessions of the web page."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals
from caraway_management.domain.identity import Credential, CredentialKind
from caraway_management.domain.scopes import SCOPES
from caraway_management.store.tables import PortalSession, User

LIFETIME = timedelta(days=7)
IDLE = timedelta(hours=24)
_MOST = 50
_BY_VALUE = (
    select(PortalSession, User)
    .join(User, User.id == PortalSession.user_id)
    .where(PortalSession.value_hash == bindparam("value_hash"))
)
_AGENT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session, with the value of its cookie."""

    row: PortalSession
    value: str


async def add_session(
    session: AsyncSession, now: datetime, user: User, address: str, user_agent: str
) -> NewSession:
    """Add a session, and remove those of the user that are over; the oldest makes room."""
    mine = PortalSession.user_id == user.id
    await session.execute(
        delete(PortalSession).where(
            mine,
            or_(PortalSession.expires_at <= now, PortalSession.last_used_at <= now - IDLE),
        )
    )
    newest = select(PortalSession.id).where(mine).order_by(PortalSession.id.desc())
    surplus = list(await session.scalars(newest.offset(_MOST - 1)))
    if surplus:
        await session.execute(delete(PortalSession).where(PortalSession.id.in_(surplus)))
    value = values.make(Prefix.SESSION)
    row = PortalSession(
        user_id=user.id,
        value_hash=values.digest(value),
        address=address,
        user_agent="".join(c for c in user_agent if c.isprintable())[:_AGENT_LENGTH],
        created_at=now,
        last_used_at=now,
        expires_at=now + LIFETIME,
    )
    session.add(row)
    await session.flush()
    return NewSession(row, value)


async def end_session(session: AsyncSession, value: str) -> None:
    """Remove the session with this value, if there is one."""
    await session.execute(
        delete(PortalSession).where(PortalSession.value_hash == values.digest(value))
    )


async def end_sessions(session: AsyncSession, user_id: int, but: int | None = None) -> None:
    """Remove the sessions of a user, all but one."""
    query = delete(PortalSession).where(PortalSession.user_id == user_id)
    await session.execute(query if but is None else query.where(PortalSession.id != but))


async def find_session(session: AsyncSession, value: str, now: datetime) -> Credential:
    """Return the credential of a session.

    Raises:
        RefusedError: there is none, or it is over, or its user is gone.
    """
    if not values.is_well_formed(value, Prefix.SESSION):
        raise refusals.unauthorized("Invalid token format")
    found = (await session.execute(_BY_VALUE, {"value_hash": values.digest(value)})).one_or_none()
    if found is None or found.User.deleted_at is not None:
        raise refusals.unauthorized("Invalid token")
    row, user = found.PortalSession, found.User
    if min(row.expires_at, row.last_used_at + IDLE) <= now:
        raise refusals.unauthorized("Token expired")
    return credential_of(row, user)


def credential_of(row: PortalSession, user: User) -> Credential:
    """Return the credential of a session: all that its user may do, in no organization."""
    return Credential(
        CredentialKind.SESSION,
        f"session:{row.id}",
        user.username,
        user.id,
        None,
        SCOPES,
        None,
        user.is_administrator,
        last_used_at=row.last_used_at,
    )


def csrf_value(value: str) -> str:
    """Return the text that requests with the cookie of a session send in a header."""
    code = hmac.new(value.encode(), b"caraway csrf", hashlib.sha256).hexdigest()
    return f"{Prefix.CSRF}{code}"


def check_csrf(value: str, sent: str | None) -> None:
    """Check that a request that changes something comes from a page that knows the session.

    Raises:
        RefusedError: the header is missing, or belongs to another session.
    """
    if sent is None or not hmac.compare_digest(csrf_value(value).encode(), sent.encode()):
        raise refusals.forbidden(
            "requests with the session's cookie send its csrf_token as X-CSRF-Token",
            "csrf_mismatch",
        )
