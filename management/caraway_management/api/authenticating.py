"""The credential of a request: of its Authorization header, or of the cookie of a session."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from caraway_management.credentials import authentication, sessions
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals
from caraway_management.domain.identity import Credential
from caraway_management.services import Services

SESSION_COOKIE = "caraway_session"
CSRF_HEADER = "x-csrf-token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


async def authenticate(
    request: Request, services: Services, session: AsyncSession, now: datetime
) -> Credential:
    """Return the credential of a request, and keep it in the state of the request.

    It is looked up once for a request: a gate and the route may both ask for it.

    Raises:
        RefusedError: there is none, or it is not valid, or a page of another site sends the cookie.
    """
    known: Credential | None = getattr(request.state, "authenticated", None)
    if known is not None:
        return known
    authorization = request.headers.get("authorization")
    cookie = request.cookies.get(SESSION_COOKIE) if authorization is None else None
    value = authentication.bearer_value(authorization) if cookie is None else cookie
    if cookie is not None and not cookie.startswith(Prefix.SESSION):
        raise refusals.unauthorized("Invalid token format")
    issuer = services.credentials.public_url
    credential = await authentication.find_credential(session, value, now, issuer)
    # A refusal is recorded as that of this credential.
    request.state.credential = credential
    if cookie is not None and request.method not in _SAFE:
        sessions.check_csrf(cookie, request.headers.get(CSRF_HEADER))
    request.state.authenticated = credential
    return credential
