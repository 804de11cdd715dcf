"""Finds the credential of a request."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, or_, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import clients, sessions, tokens
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals
from caraway_management.domain.identity import Credential
from caraway_management.store.database import Database
from caraway_management.store.tables import OAuthClient, PortalSession, Token

Find = Callable[[AsyncSession, str, datetime], Coroutine[Any, Any, Credential]]
_SCHEME = "bearer "
_NOTED_EVERY = timedelta(minutes=1)

KINDS: Mapping[str, Find] = {
    Prefix.PERSONAL_TOKEN: tokens.find_token,
    Prefix.CLI_TOKEN: tokens.find_token,
    Prefix.SESSION: sessions.find_session,
}
"""The finder of each prefix."""


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


async def find_credential(
    session: AsyncSession, value: str, now: datetime, issuer: str
) -> Credential:
    """Return the credential with this value. `issuer` is that of the access tokens of clients.

    Raises:
        RefusedError: there is none.
    """
    find = next((find for prefix, find in KINDS.items() if value.startswith(prefix)), None)
    if find is not None:
        return await find(session, value, now)
    if value.count(".") == 2 and value.isascii():
        return await clients.find_access_token(session, value, now, issuer)
    raise refusals.unauthorized("Invalid token format")


def note_use(database: Database, credential: Credential, now: datetime) -> None:
    """Keep when a credential was used last, at most once a minute. No request waits for it."""
    last = credential.last_used_at
    if last is not None and now - last < _NOTED_EVERY:
        return
    kind, _, id_ = credential.id.partition(":")
    table, is_it = _row(kind, id_)
    is_old = or_(table.last_used_at.is_(None), table.last_used_at <= now - _NOTED_EVERY)

    async def write(session: AsyncSession) -> None:
        await session.execute(update(table).where(is_it, is_old).values(last_used_at=now))

    database.later.add_once(credential.id, write)


def _row(
    kind: str, id_: str
) -> tuple[type[Token] | type[OAuthClient] | type[PortalSession], ColumnElement[bool]]:
    if kind == "client":
        return OAuthClient, OAuthClient.client_id == id_
    if kind == "session":
        return PortalSession, PortalSession.id == int(id_)
    return Token, Token.id == int(id_)
