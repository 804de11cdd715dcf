"""The answers of the token endpoint: tokens, or an error of RFC 6749."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import CarawayError
from caraway_management.credentials import signing
from caraway_management.credentials.settings import CredentialSettings
from caraway_management.credentials.signing import Seals
from caraway_management.domain import scopes
from caraway_management.store.tables import OAuthClient, Token


class GrantError(CarawayError):
    """A request of an OAuth client that is refused, with its code of RFC 6749."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Issuer:
    """Issues access tokens."""

    settings: CredentialSettings
    seals: Seals

    async def access_token(
        self,
        session: AsyncSession,
        now: datetime,
        client: OAuthClient,
        scopes: Sequence[str],
        grant: Token | None = None,
    ) -> dict[str, Any]:
        """Return the answer with an access token: of the client itself, or of its user."""
        expires = now + signing.LIFETIME
        limits = [client.expires_at, grant.expires_at if grant else None]
        expires = min([expires, *(limit for limit in limits if limit is not None)])
        claims: dict[str, object] = {
            "iss": self.settings.public_url,
            "aud": self.settings.public_url,
            "client_id": client.client_id,
            "org_id": grant.org_id if grant else client.org_id,
            "scopes": list(scopes),
            "jti": secrets.token_urlsafe(16),
            "iat": int(now.timestamp()),
            "exp": int(expires.timestamp()),
        }
        if grant is not None:
            claims |= {"sub": str(grant.user_id), "grant": grant.id}
        return {
            "access_token": await signing.sign(session, self.seals, now, claims),
            "token_type": "Bearer",
            "expires_in": int((expires - now).total_seconds()),
            "scope": " ".join(scopes),
        }


def one(parameters: Mapping[str, str], name: str) -> str:
    """Return a parameter that a request must have.

    Raises:
        GrantError: it is missing.
    """
    value = parameters.get(name)
    if not value:
        raise GrantError("invalid_request", f"{name} is missing")
    return value


def narrower(parameters: Mapping[str, str], granted: Sequence[str]) -> list[str]:
    """Return the scopes that a request asks for, or all that are granted.

    Raises:
        GrantError: it asks for others.
    """
    asked = parameters.get("scope", "").split()
    if scopes.unknown(asked) or scopes.expand(asked) - scopes.expand(granted):
        raise GrantError("invalid_scope", "the grant has no such scopes")
    return sorted(set(asked)) or list(granted)
