"""Ends each way to sign in on the web page: a new session and its cookie."""

import logging
from urllib.parse import urlsplit

from fastapi import Request, Response
from sqlalchemy import select

from caraway_management.api.access import Caller, services_of
from caraway_management.api.authenticating import SESSION_COOKIE
from caraway_management.credentials import attempts, sessions
from caraway_management.credentials.sessions import NewSession
from caraway_management.credentials.values import Prefix
from caraway_management.domain import names, refusals
from caraway_management.domain.identity import Credential, CredentialKind
from caraway_management.services import Services
from caraway_management.store.tables import User

logger = logging.getLogger(__name__)
_WRONG = "unknown user, or wrong password"
_OF_USER_AND_ADDRESS, _OF_USER, _OF_ADDRESS = 5, 50, 100


def address_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else ""


def check_same_site(request: Request) -> None:
    """Check that a browser does not send a form of another site.

    Raises:
        RefusedError: it does.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = (
        request.headers.get("host"),
        urlsplit(services_of(request).credentials.public_url).netloc,
    )
    is_foreign = origin is not None and urlsplit(origin).netloc not in own
    if is_foreign or site not in (None, "same-origin", "none"):
        raise refusals.forbidden("the form is not one of this service", "csrf_mismatch")


async def check_password(services: Services, username: str, password: str, address: str) -> User:
    """Return the user with this password.

    Too many wrong ones for a user, or from an address, are refused for a while. An unknown user
    gets the same answer after the same work.

    Raises:
        RefusedError: 401, there is no such user or it is another password; 429, too many attempts.
    """
    key = names.key(username)
    limits = {
        attempts.key("pair", key, address): _OF_USER_AND_ADDRESS,
        attempts.key("user", key): _OF_USER,
        attempts.key("address", address): _OF_ADDRESS,
    }
    async with services.database.change() as session:
        await attempts.count(session, services.now(), limits)
        user = await session.scalar(
            select(User).where(User.username_key == key, User.deleted_at.is_(None))
        )
    stored = user.password_hash if user else None
    is_right = await services.passwords.verify(stored, password)
    if user is None or stored is None or not is_right:
        logger.info("sign-in refused", extra={"user": user.id if user else None})
        raise refusals.unauthorized(_WRONG)
    rehashed = None
    if services.passwords.needs_rehash(stored):
        rehashed = await services.passwords.hash(password)
    async with services.database.change() as session:
        await attempts.forgive(session, limits)
        if rehashed is not None:
            (await session.get_one(User, user.id)).password_hash = rehashed
    return user


async def open_session(request: Request, services: Services, user: User) -> NewSession:
    """Add a session of a user; that of the browser before ends, so that its value is worth nothing.

    Raises:
        RefusedError: the user was deleted meanwhile.
    """
    before = request.cookies.get(SESSION_COOKIE, "")
    caller = Caller(services, request, _beginning(user), None)
    async with caller.change() as change:
        present = await change.session.get_one(User, user.id)
        if present.deleted_at is not None:
            raise refusals.unauthorized(_WRONG)
        if before.startswith(Prefix.SESSION):
            await sessions.end_session(change.session, before)
        session = await sessions.add_session(
            change.session,
            change.now,
            present,
            address_of(request),
            request.headers.get("user-agent", ""),
        )
        request.state.credential = sessions.credential_of(session.row, present)
        change.on("session", session.row.id, present.username)
    return session


def set_cookie(response: Response, request: Request, services: Services, value: str) -> None:
    """Give the browser the value of a session, which scripts cannot read."""
    response.set_cookie(
        SESSION_COOKIE,
        value,
        max_age=int(sessions.LIFETIME.total_seconds()),
        path="/",
        secure=is_secure(request, services),
        httponly=True,
        samesite="lax",
    )


def is_secure(request: Request, services: Services) -> bool:
    """Return whether the browser reaches the service over TLS."""
    return services.credentials.is_secure or request.url.scheme == "https"


def _beginning(user: User) -> Credential:
    return Credential(CredentialKind.SESSION, "session:", user.username, user.id, None, frozenset())
