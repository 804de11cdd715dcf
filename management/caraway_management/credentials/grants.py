"""Grants of users to OAuth clients: authorization codes with PKCE, and refresh tokens."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import clients, tokens, values
from caraway_management.credentials.oauth import GrantError, Issuer, narrower, one
from caraway_management.credentials.values import Prefix
from caraway_management.domain import grants, refusals, scopes
from caraway_management.domain.scopes import EVERYTHING, SCOPES
from caraway_management.store.tables import AuthorizationCode, OAuthClient, Token, User

CODE_LIFETIME = timedelta(minutes=2)
REFRESH_LIFETIME = timedelta(days=30)
_REMEMBERED_FOR = timedelta(days=1)
_READS = sorted(scope for scope in SCOPES if scope.endswith(":read"))
_MOST_SCOPES = 50


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """The grant that a client requests from a user."""

    client: OAuthClient
    redirect_uri: str
    scopes: list[str]
    challenge: str
    state: str | None


async def check_client(
    session: AsyncSession, now: datetime, parameters: Mapping[str, str]
) -> tuple[OAuthClient, str]:
    """Return the client of a request, and where the user is sent back to.

    Raises:
        RefusedError: it names none that is registered. The user must not be sent there.
    """
    client = await clients.live_client(session, now, parameters.get("client_id", ""))
    if client is None or client.org_id is not None:
        raise refusals.invalid("the program that asks for access is not registered here")
    uri = parameters.get("redirect_uri", "")
    if not grants.is_registered(uri, client.redirect_uris):
        raise refusals.invalid("redirect_uri is not one that the program has registered")
    return client, uri


def check_request(
    client: OAuthClient, redirect_uri: str, parameters: Mapping[str, str], public_url: str
) -> AuthorizationRequest:
    """Return what a client asks for.

    Raises:
        GrantError: the request is wrong; the client is to know.
    """
    if parameters.get("response_type") != "code":
        raise GrantError("unsupported_response_type", "response_type must be code")
    challenge = parameters.get("code_challenge", "")
    if parameters.get("code_challenge_method") != "S256" or not grants.is_challenge(challenge):
        raise GrantError("invalid_request", "PKCE is needed: code_challenge with the method S256")
    check_resource(parameters, public_url)
    asked = parameters.get("scope", "").split() or _READS
    unknown = scopes.unknown(asked)
    if unknown or len(asked) > _MOST_SCOPES:
        raise GrantError("invalid_scope", "the request names unknown scopes")
    wanted = [EVERYTHING] if EVERYTHING in asked else sorted(set(asked))
    return AuthorizationRequest(client, redirect_uri, wanted, challenge, parameters.get("state"))


def check_resource(parameters: Mapping[str, str], public_url: str) -> None:
    """Check the resource of a requested token (RFC 8707): this service, or a part of it.

    Raises:
        GrantError: it is another one.
    """
    resource = parameters.get("resource")
    base = public_url
    if resource and resource.rstrip("/") != base and not resource.startswith(f"{base}/"):
        raise GrantError("invalid_target", f"resource must be {base} or a part of it")


async def add_code(
    session: AsyncSession,
    now: datetime,
    request: AuthorizationRequest,
    user_id: int,
    org_id: int | None,
) -> str:
    """Return a code with which the client gets its tokens."""
    await session.execute(
        delete(AuthorizationCode).where(AuthorizationCode.expires_at <= now - _REMEMBERED_FOR)
    )
    code = values.make(Prefix.AUTHORIZATION_CODE)
    session.add(
        AuthorizationCode(
            code_hash=values.digest(code),
            client_id=request.client.client_id,
            user_id=user_id,
            org_id=org_id,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            scopes=request.scopes,
            created_at=now,
            expires_at=now + CODE_LIFETIME,
        )
    )
    await session.flush()
    return code


async def redeem_code(
    session: AsyncSession,
    issuer: Issuer,
    now: datetime,
    client: OAuthClient,
    parameters: Mapping[str, str],
) -> dict[str, object] | GrantError:
    """Return tokens for a code. What a code that was used gave is revoked, and refused.

    The refusal is returned, so that the revocation is committed.

    Raises:
        GrantError: a parameter is missing.
    """
    code = one(parameters, "code")
    check_resource(parameters, issuer.settings.public_url)
    verifier = one(parameters, "code_verifier")
    refused = GrantError(
        "invalid_grant", "the code is unknown, expired or used, or not the client's"
    )
    row = await session.scalar(
        select(AuthorizationCode)
        .where(AuthorizationCode.code_hash == values.digest(code))
        .with_for_update()
    )
    if row is None or row.client_id != client.client_id:
        return refused
    if row.token_id is not None:
        await _revoke(session, now, row.token_id)
        return refused
    user = await session.get(User, row.user_id)
    is_same = parameters.get("redirect_uri") == row.redirect_uri
    if row.expires_at <= now or not is_same or not _proves(verifier, row.challenge):
        return refused
    if user is None or user.deleted_at is not None:
        return refused
    token = await tokens.add_token(
        session,
        now,
        user,
        client.name,
        scopes=row.scopes,
        org_id=row.org_id,
        expires_at=now + REFRESH_LIFETIME,
        prefix=Prefix.REFRESH_TOKEN,
        client_id=client.client_id,
    )
    row.token_id = token.row.id
    answer = await issuer.access_token(session, now, client, row.scopes, token.row)
    return answer | {"refresh_token": token.value}


async def refresh(
    session: AsyncSession,
    issuer: Issuer,
    now: datetime,
    client: OAuthClient,
    parameters: Mapping[str, str],
) -> dict[str, object] | GrantError:
    """Return new tokens for a refresh token, which is used up.

    One that was used before is in two hands: the grant ends. The refusal is returned, so that this
    is committed.

    Raises:
        GrantError: the parameter is missing, or asks for more scopes than the grant has.
    """
    sent = values.digest(one(parameters, "refresh_token"))
    check_resource(parameters, issuer.settings.public_url)
    refused = GrantError("invalid_grant", "the refresh token is unknown, expired or used")
    row = await session.scalar(
        select(Token)
        .where(or_(Token.value_hash == sent, Token.previous_hash == sent))
        .where(Token.client_id == client.client_id)
        .with_for_update()
    )
    if row is None or row.revoked_at is not None:
        return refused
    if not hmac.compare_digest(row.value_hash, sent):
        await _revoke(session, now, row.id)
        return refused
    user = await session.get(User, row.user_id)
    is_over = row.expires_at is not None and row.expires_at <= now
    if is_over or user is None or user.deleted_at is not None:
        return refused
    value = values.make(Prefix.REFRESH_TOKEN)
    row.previous_hash, row.value_hash = row.value_hash, values.digest(value)
    row.hint, row.expires_at = values.hint(value), now + REFRESH_LIFETIME
    asked = narrower(parameters, row.scopes)
    answer = await issuer.access_token(session, now, client, asked, row)
    return answer | {"refresh_token": value}


async def _revoke(session: AsyncSession, now: datetime, token_id: int) -> None:
    token = await session.get(Token, token_id)
    if token is not None and token.revoked_at is None:
        token.revoked_at = now
        await session.flush()


def _proves(verifier: str, challenge: str) -> bool:
    if not grants.is_verifier(verifier):
        return False
    digest = hashlib.sha256(verifier.encode()).digest()
    expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return hmac.compare_digest(expected, challenge)
