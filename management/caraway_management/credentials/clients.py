"""OAuth clients: machines of an organization, and programs that registered themselves."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import signing, tokens, values
from caraway_management.credentials.oauth import GrantError
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals, scopes
from caraway_management.domain.identity import Credential, CredentialKind
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import OAuthClient, Token

MOST_CLIENTS = 500
MOST_REGISTERED = 10_000
_UNUSED_FOR = timedelta(days=30)


async def add_client(
    session: AsyncSession,
    now: datetime,
    org_id: int,
    name: str,
    description: str,
    scopes: Sequence[str],
    expires_at: datetime | None,
    role: Role,
    created_by: int | None,
) -> tuple[OAuthClient, str]:
    """Add a client of an organization. Returns it with its secret, which is shown once.

    Raises:
        RefusedError: the organization has too many.
    """
    mine = (OAuthClient.org_id == org_id, OAuthClient.deleted_at.is_(None))
    query = select(func.count()).select_from(OAuthClient).where(*mine)
    if (await session.scalar(query) or 0) >= MOST_CLIENTS:
        raise refusals.conflict(f"an organization has at most {MOST_CLIENTS} OAuth clients")
    secret = values.make(Prefix.CLIENT_SECRET)
    client = OAuthClient(
        client_id=_new_id(),
        org_id=org_id,
        name=name,
        description=description,
        scopes=list(scopes),
        secret_hash=values.digest(secret),
        redirect_uris=[],
        role=role,
        created_by=created_by,
        created_at=now,
        expires_at=expires_at,
    )
    session.add(client)
    await session.flush()
    return client, secret


async def register(
    session: AsyncSession, now: datetime, name: str, redirect_uris: Sequence[str]
) -> OAuthClient:
    """Add a client that registers itself (RFC 7591). It has no secret, and acts for users only.

    Raises:
        RefusedError: 503, there are too many.
    """
    granted = select(Token.client_id).where(Token.client_id.is_not(None))
    registered = OAuthClient.org_id.is_(None)
    old = OAuthClient.created_at <= now - _UNUSED_FOR
    await session.execute(
        delete(OAuthClient).where(registered, old, OAuthClient.client_id.not_in(granted))
    )
    query = select(func.count()).select_from(OAuthClient).where(registered)
    if (await session.scalar(query) or 0) >= MOST_REGISTERED:
        raise refusals.RefusedError(503, "too many clients are registered; try again later")
    client = OAuthClient(
        client_id=_new_id(),
        name=name,
        description="",
        scopes=[],
        redirect_uris=list(redirect_uris),
        role=Role.VIEWER,
        created_at=now,
    )
    session.add(client)
    await session.flush()
    return client


async def get_client(session: AsyncSession, org_id: int, client_id: str) -> OAuthClient:
    """Return a client of an organization.

    Raises:
        RefusedError: the organization has no such client.
    """
    client = await session.get(OAuthClient, client_id)
    if client is None or client.org_id != org_id or client.deleted_at is not None:
        raise refusals.not_found("OAuth client", client_id[:100])
    return client


async def live_client(session: AsyncSession, now: datetime, client_id: str) -> OAuthClient | None:
    """Return a client that is neither deleted nor expired."""
    client = await session.get(OAuthClient, client_id)
    if client is None or client.deleted_at is not None:
        return None
    return None if client.expires_at is not None and client.expires_at <= now else client


async def authenticate(
    session: AsyncSession, now: datetime, client_id: str, secret: str | None
) -> OAuthClient:
    """Return the client that sends its secret; one that has none must send none.

    Raises:
        GrantError: there is no such client, or the secret is another.
    """
    client = await live_client(session, now, client_id)
    stored = client.secret_hash if client else None
    # The comparison is made for every client, so that the time does not reveal which exist.
    is_right = values.matches(secret or "", stored or values.digest(""))
    if client is None or not is_right or (stored is not None and not secret):
        raise GrantError("invalid_client", "unknown client, or wrong secret", 401)
    return client


async def find_access_token(
    session: AsyncSession, value: str, now: datetime, issuer: str
) -> Credential:
    """Return the credential of an access token: of a machine, or of a user who granted it.

    Raises:
        RefusedError: it is not valid, or its client, its grant or its user is gone.
    """
    claims = await signing.verify(session, value, now, issuer)
    client = await session.get(OAuthClient, str(claims["client_id"]))
    if client is None or client.deleted_at is not None:
        raise refusals.unauthorized("Invalid token")
    if client.expires_at is not None and client.expires_at <= now:
        raise refusals.unauthorized("Token expired")
    given = scopes.expand(claims.get("scopes", ()))
    if "grant" in claims:
        credential = await tokens.find_grant(session, int(claims["grant"]), client.client_id, now)
        return _narrowed(credential, given)
    if client.org_id is None or claims.get("org_id") != client.org_id:
        raise refusals.unauthorized("Invalid token")
    return Credential(
        CredentialKind.MACHINE,
        f"client:{client.client_id}",
        client.name,
        None,
        client.org_id,
        given & scopes.expand(client.scopes),
        client.org_id,
        machine_role=Role(client.role),
        expires_at=client.expires_at,
        last_used_at=client.last_used_at,
    )


def _narrowed(credential: Credential, given: frozenset[str]) -> Credential:
    return replace(credential, scopes=credential.scopes & given)


def _new_id() -> str:
    return f"cc_{secrets.token_hex(16)}"
