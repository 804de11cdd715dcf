"""Personal access tokens, and those of signed-in command lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import names, refusals, scopes
from caraway_management.domain.identity import Credential, CredentialKind
from caraway_management.domain.scopes import EVERYTHING
from caraway_management.store.tables import Token, User

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
    return await credential_of(session, Token.value_hash == values.digest(value), now)


async def credential_of(
    session: AsyncSession, condition: ColumnElement[bool], now: datetime
) -> Credential:
    """Return the credential of the one token that meets a condition.

    Raises:
        RefusedError: there is no such token, or it is expired or revoked, or its owner is gone.
    """
    found = (
        await session.execute(
            select(Token, User).join(User, User.id == Token.user_id).where(condition)
        )
    ).one_or_none()
    if found is None or found.Token.revoked_at is not None or found.User.deleted_at is not None:
        raise refusals.unauthorized("Invalid token")
    token, user = found.Token, found.User
    if token.expires_at is not None and token.expires_at <= now:
        raise refusals.unauthorized("Token expired")
    return Credential(
        CredentialKind.USER,
        f"token:{token.id}",
        user.username,
        user.id,
        token.org_id,
        scopes.expand(token.scopes),
        token.org_id or user.home_org_id,
        user.is_administrator,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
    )
