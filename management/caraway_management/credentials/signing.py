"""Signs short tokens with keys that rotate, and verifies them."""

import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import ECKey
from sqlalchemy import or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import refusals
from caraway_management.store.tables import SigningKey

ALGORITHM = "ES256"
LIFETIME = timedelta(hours=1)
ROTATED_AFTER = timedelta(days=30)
SKEW = timedelta(seconds=30)
"""The difference that the clocks of two instances may have."""
_LONGEST = 8_192
_PLACE = "signing key"
_TYPE = "at+jwt"
_RETIRED_FOR = LIFETIME + 2 * SKEW


class Seals(Protocol):
    """Seals private keys at rest."""

    async def seal(self, session: AsyncSession, plaintext: str, place: str = "") -> str:
        """Return a text sealed for a place."""
        ...

    async def open(self, session: AsyncSession, sealed: str, place: str = "") -> str:
        """Return the text that was sealed for a place."""
        ...


async def sign(
    session: AsyncSession, seals: Seals, now: datetime, claims: Mapping[str, object]
) -> str:
    """Return a token with these claims, signed with the key of the day."""
    row = await _current(session, seals, now)
    key = ECKey.import_key(json.loads(await seals.open(session, row.sealed_private_key, _PLACE)))
    header = {"alg": ALGORITHM, "typ": _TYPE, "kid": row.key_id}
    return jwt.encode(header, dict(claims), key, [ALGORITHM])


async def verify(session: AsyncSession, value: str, now: datetime, issuer: str) -> dict[str, Any]:
    """Return the claims of a token that was signed here, for this issuer, and is not expired.

    Raises:
        RefusedError: it was not.
    """
    if len(value) > _LONGEST:
        raise refusals.unauthorized("Invalid token format")
    try:
        header = jws.extract_compact(value.encode()).headers()
        if header.get("typ") != _TYPE:
            raise refusals.unauthorized("Invalid token")
        key = await _public(session, header.get("kid"), now)
        claims = jwt.decode(value, key, [ALGORITHM]).claims
        _claims(now, issuer).validate(claims)
    except ExpiredTokenError:
        raise refusals.unauthorized("Token expired") from None
    except (JoseError, ValueError, RecursionError):
        raise refusals.unauthorized("Invalid token") from None
    return claims


async def published(session: AsyncSession, now: datetime) -> dict[str, object]:
    """Return the public keys of tokens that may still be valid, as a JWK set."""
    rows = await session.scalars(
        select(SigningKey)
        .where(or_(SigningKey.retired_at.is_(None), SigningKey.retired_at > now - _RETIRED_FOR))
        .order_by(SigningKey.created_at.desc())
    )
    return {"keys": [json.loads(row.public_key) for row in rows]}


async def _current(session: AsyncSession, seals: Seals, now: datetime) -> SigningKey:
    """Return the key that signs now; a key that is old is retired, and its private part erased."""
    row = await session.scalar(
        select(SigningKey)
        .where(SigningKey.retired_at.is_(None))
        .order_by(SigningKey.created_at.desc(), SigningKey.key_id)
        .limit(1)
    )
    if row is not None and row.created_at + ROTATED_AFTER > now:
        return row
    await session.execute(
        update(SigningKey)
        .where(SigningKey.retired_at.is_(None))
        .values(retired_at=now, sealed_private_key="")
    )
    key_id = secrets.token_urlsafe(12)
    marks = {"kid": key_id, "alg": ALGORITHM, "use": "sig"}
    key = ECKey.generate_key("P-256")
    row = SigningKey(
        key_id=key_id,
        public_key=json.dumps(key.as_dict(private=False) | marks),
        sealed_private_key=await seals.seal(session, json.dumps(key.as_dict(private=True)), _PLACE),
        created_at=now,
    )
    session.add(row)
    await session.flush()
    return row


async def _public(session: AsyncSession, key_id: object, now: datetime) -> ECKey:
    row = await session.get(SigningKey, key_id) if isinstance(key_id, str) else None
    if row is None or (row.retired_at is not None and row.retired_at + _RETIRED_FOR <= now):
        raise refusals.unauthorized("Invalid token")
    return ECKey.import_key(json.loads(row.public_key))


def _claims(now: datetime, issuer: str) -> jwt.JWTClaimsRegistry:
    needed: jwt.ClaimsOption = {"essential": True}
    return jwt.JWTClaimsRegistry(
        int(now.timestamp()),
        int(SKEW.total_seconds()),
        iss={"essential": True, "value": issuer},
        exp=needed,
        iat=needed,
        jti=needed,
        client_id=needed,
    )
