"""Finds the credential of a request."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals, scopes
from caraway_management.domain.identity import Credential, CredentialKind
from caraway_management.store.tables import Token, User

Find = Callable[[AsyncSession, str, datetime], Coroutine[Any, Any, Credential]]
_SCHEME = "bearer "


def bearer_value(authorization: str | None) -> str:
    """Return the value of an Authorization header.

    Raises:
        RefusedError: the header is missing, or is not `Bearer <value>`.
    """
    if authorization is None:
        raise refusals.unauthorized("Missing Authorization header")
    value = authorization[len(_SCHEME) :].strip()
    if authorization[: len(_SCHEME)].lower() != _SCHEME or not value:
        raise refusals.unauthorized("Invalid Authorization header; send Bearer <ACCESS_TOKEN>")
    return value


async def find_token(session: AsyncSession, value: str, now: datetime) -> Credential:
    """Return the credential of a personal access token, or of a signed-in command line.

    Raises:
        RefusedError: there is no such token, or it is expired or revoked, or its owner is gone.
    """
    prefix = Prefix.CLI_TOKEN if value.startswith(Prefix.CLI_TOKEN) else Prefix.PERSONAL_TOKEN
    if not values.is_well_formed(value, prefix):
        raise refusals.unauthorized("Invalid token format")
    found = (
        await session.execute(
            select(Token, User)
            .join(User, User.id == Token.user_id)
            .where(Token.value_hash == values.digest(value))
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
    )


KINDS: Mapping[str, Find] = {
    Prefix.PERSONAL_TOKEN: find_token,
    Prefix.CLI_TOKEN: find_token,
}
"""The finder of each prefix."""


async def find_credential(session: AsyncSession, value: str, now: datetime) -> Credential:
    """Return the credential with this value.

    Raises:
        RefusedError: there is none.
    """
    find = next((find for prefix, find in KINDS.items() if value.startswith(prefix)), None)
    if find is None:
        raise refusals.unauthorized("Invalid token format")
    return await find(session, value, now)
