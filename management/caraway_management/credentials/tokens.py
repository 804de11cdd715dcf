"""Personal access tokens, and those of signed-in command lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import names, refusals, scopes
from caraway_management.domain.identity import (
    Credential,
    CredentialKind,
    Organization,
    RoleInOrganization,
)
from caraway_management.domain.scopes import EVERYTHING, Role
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import Member, Org, Token, User

_FOUND = (
    select(
        Token.id,
        Token.org_id,
        Token.scopes,
        Token.expires_at,
        Token.last_used_at,
        Token.revoked_at,
        User.id.label("user_id"),
        User.username,
        User.home_org_id,
        User.is_administrator,
        User.deleted_at,
        Org.id.label("found_org_id"),
        Org.name.label("org_name"),
        Org.plan,
        Org.deleted_at.label("org_deleted_at"),
        Member.role,
    )
    .join(User, User.id == Token.user_id)
    .outerjoin(Org, Org.id == func.coalesce(Token.org_id, User.home_org_id))
    .outerjoin(Member, (Member.org_id == Org.id) & (Member.user_id == User.id))
)
"""The organization comes along, so that most requests need no second lookup."""
_BY_VALUE = Lookup(_FOUND.where(Token.value_hash == bindparam("value_hash")))
_BY_GRANT = Lookup(
    _FOUND.where(Token.id == bindparam("id"), Token.client_id == bindparam("client_id"))
)
MOST_TOKENS = 500
_KEPT = timedelta(days=30)
_KINDS = {
    Prefix.PERSONAL_TOKEN: "personal",
    Prefix.CLI_TOKEN: "cli",
    Prefix.REFRESH_TOKEN: "oauth",
}


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, with the value that is shown once."""

    row: Token
    value: str


async def add_token(
    session: AsyncSession,
    now: datetime,
    user: User,
    name: str,
    *,
    scopes: Sequence[str] = (EVERYTHING,),
    org_id: int | None = None,
    expires_at: datetime | None = None,
    prefix: Prefix = Prefix.PERSONAL_TOKEN,
    client_id: str | None = None,
) -> NewToken:
    """Add a token of a user, and forget those that were revoked long ago.

    Raises:
        RefusedError: the user has too many.
    """
    await session.execute(
        delete(Token).where(Token.user_id == user.id, Token.revoked_at <= now - _KEPT)
    )
    query = select(func.count()).select_from(Token).where(*is_live(user.id, now))
    if (await session.scalar(query) or 0) >= MOST_TOKENS:
        raise refusals.conflict(f"a user has at most {MOST_TOKENS} tokens; revoke some first")
    value = values.make(prefix)
    row = Token(
        user_id=user.id,
        org_id=org_id,
        client_id=client_id,
        name=names.check_text(name, "name"),
        kind=_KINDS[prefix],
        hint=values.hint(value),
        value_hash=values.digest(value),
        scopes=list(scopes),
        created_at=now,
        expires_at=expires_at,
    )
    session.add(row)
    await session.flush()
    return NewToken(row, value)


def is_live(user_id: int, now: datetime) -> list[ColumnElement[bool]]:
    """Return the conditions for tokens of a user that are neither revoked nor expired."""
    return [
        Token.user_id == user_id,
        Token.revoked_at.is_(None),
        or_(Token.expires_at.is_(None), Token.expires_at > now),
    ]


async def get_token(session: AsyncSession, user_id: int, token_id: int) -> Token:
    """Return a token of a user that is not revoked.

    Raises:
        RefusedError: the user has no such token.
    """
    row = await session.get(Token, token_id)
    if row is None or row.user_id != user_id or row.revoked_at is not None:
        raise refusals.not_found("token", token_id)
    return row


async def find_token(session: AsyncSession, value: str, now: datetime) -> Credential:
    """Return the credential of a personal access token, or of a signed-in command line.

    Raises:
        RefusedError: there is no such token, or it is expired or revoked, or its owner is gone.
    """
    prefix = Prefix.CLI_TOKEN if value.startswith(Prefix.CLI_TOKEN) else Prefix.PERSONAL_TOKEN
    if not values.is_well_formed(value, prefix):
        raise refusals.unauthorized("Invalid token format")
    found = await _BY_VALUE.one_or_none(session, value_hash=values.digest(value))
    return _credential(found, now)


async def find_grant(
    session: AsyncSession, token_id: int, client_id: str, now: datetime
) -> Credential:
    """Return the credential of a grant of a user to an OAuth client.

    Raises:
        RefusedError: there is no such grant, or it is expired or revoked, or its owner is gone.
    """
    found = await _BY_GRANT.one_or_none(session, id=token_id, client_id=client_id)
    return _credential(found, now)


def _credential(found: Any, now: datetime) -> Credential:
    """Return the credential of a row with a token and its owner.

    Raises:
        RefusedError: there is none, or it is expired or revoked, or its owner is gone.
    """
    if found is None or found.revoked_at is not None or found.deleted_at is not None:
        raise refusals.unauthorized("Invalid token")
    if found.expires_at is not None and found.expires_at <= now:
        raise refusals.unauthorized("Token expired")
    return Credential(
        CredentialKind.USER,
        f"token:{found.id}",
        found.username,
        found.user_id,
        found.org_id,
        scopes.expand(found.scopes),
        found.org_id or found.home_org_id,
        found.is_administrator,
        expires_at=found.expires_at,
        last_used_at=found.last_used_at,
        home=_home(found),
    )


def _home(found: Any) -> RoleInOrganization | None:
    if found.found_org_id is None:
        return None
    return RoleInOrganization(
        Organization(found.found_org_id, found.org_name, found.plan, found.org_deleted_at),
        Role(found.role) if found.role is not None else None,
    )
