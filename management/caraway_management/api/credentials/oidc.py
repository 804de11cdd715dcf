"""`/auth/oidc`: sign-in by the OIDC issuer of the installation."""

import hmac
from datetime import timedelta
from html import escape
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from sqlalchemy import delete
from starlette.responses import RedirectResponse, Response

from caraway_management import accounts
from caraway_management.api.access import GivenServices
from caraway_management.api.credentials import browser, pages, signing_in
from caraway_management.credentials import values
from caraway_management.credentials.oidc import Oidc
from caraway_management.domain import grants, refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services
from caraway_management.store.tables import SignIn

router = APIRouter(include_in_schema=False)
_COOKIE = "caraway_sign_in"
_PATH = "/auth/oidc"
_LIFETIME = timedelta(minutes=10)


@router.get(_PATH)
async def begin_oidc_sign_in(
    request: Request,
    services: GivenServices,
    return_to: Annotated[str, Query()] = "/",
    link: Annotated[bool, Query()] = False,
) -> Response:
    """Send the browser to the issuer. With `link`, the signed-in user gets the identity."""
    try:
        return await _begin(request, services, grants.check_return(return_to), link)
    except RefusedError as exc:
        # The place is checked, unless the refusal is about it.
        back = "/" if "return_to" in exc.fields else return_to
        return _failed(request, exc, back)


async def _begin(request: Request, services: Services, return_to: str, link: bool) -> Response:
    oidc = _configured(services)
    visitor = await browser.find_visitor(request, services) if link else None
    if link and visitor is None:
        return browser.to_sign_in(request)
    now = services.now()
    begun = await oidc.begin_sign_in(_callback(services), now)
    async with services.database.change() as session:
        await session.execute(delete(SignIn).where(SignIn.expires_at <= now))
        session.add(
            SignIn(
                state_hash=values.digest(begun.state),
                nonce=begun.nonce,
                verifier=begun.verifier,
                return_to=return_to,
                user_id=visitor.user_id if visitor else None,
                created_at=now,
                expires_at=now + _LIFETIME,
            )
        )
    response = RedirectResponse(begun.url, 303, {"cache-control": "no-store"})
    # Only the browser that began may finish, so that a link cannot sign another browser in.
    response.set_cookie(
        _COOKIE,
        begun.state,
        max_age=int(_LIFETIME.total_seconds()),
        path=_cookie_path(services),
        secure=signing_in.is_secure(request, services),
        httponly=True,
        samesite="lax",
    )
    return response


@router.get(f"{_PATH}/callback")
async def finish_oidc_sign_in(
    request: Request,
    services: GivenServices,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=4_000)] = "",
    iss: Annotated[str | None, Query(max_length=2_000)] = None,
) -> Response:
    """Sign in the user who comes back from the issuer."""
    begun: SignIn | None = None
    try:
        oidc = _configured(services)
        begun = await _find(request, services, state)
        return await _finish(request, services, oidc, begun, code, iss)
    except RefusedError as exc:
        return _failed(request, exc, begun.return_to if begun else "/")


async def _find(request: Request, services: Services, state: str) -> SignIn:
    """Return the sign-in that comes to its end, which works once.

    Raises:
        RefusedError: it did not begin in this browser, or is over.
    """
    if not hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), state.encode()):
        raise refusals.forbidden("the sign-in did not begin in this browser", "csrf_mismatch")
    async with services.database.change() as session:
        begun = await session.get(SignIn, values.digest(state), with_for_update=True)
        if begun is not None:
            await session.delete(begun)
    if begun is None or begun.expires_at <= services.now():
        raise refusals.invalid("the sign-in is unknown, expired or finished; begin again")
    return begun


async def _finish(
    request: Request, services: Services, oidc: Oidc, begun: SignIn, code: str, iss: str | None
) -> Response:
    now = services.now()
    if iss is not None and iss != oidc.settings.issuer:
        raise refusals.forbidden("the answer is from another issuer")
    if not code:
        raise refusals.forbidden("the identity provider did not sign you in")
    identity = await oidc.finish(code, begun.nonce, begun.verifier, _callback(services), now)
    async with services.database.change() as session:
        user = await accounts.user_of_identity(
            session,
            now,
            identity,
            adds_users=oidc.settings.adds_users,
            link_to=begun.user_id,
        )
    new_session = await signing_in.open_session(request, services, user)
    response = browser.go_to(request, begun.return_to)
    response.delete_cookie(_COOKIE, path=_cookie_path(services))
    signing_in.set_cookie(response, request, services, new_session.value)
    return response


def _configured(services: Services) -> Oidc:
    if services.oidc is None:
        raise refusals.not_found("an OIDC issuer of this installation")
    return services.oidc


def _failed(request: Request, exc: RefusedError, return_to: str) -> Response:
    """Return the response of a sign-in that failed: a page for browsers, which leads back."""
    if "text/html" not in request.headers.get("accept", ""):
        raise exc
    request.state.refusal = exc.code
    back = escape(pages.address(request, return_to))
    content = (
        f'<p role="alert">{escape(exc.message)}</p>'
        f'<p><a href="{back}">Go back and sign in again</a></p>'
    )
    response = pages.page("Sign in", content, exc.status)
    response.headers.update(exc.headers)
    return response


def _callback(services: Services) -> str:
    return f"{services.credentials.public_url.rstrip('/')}{_PATH}/callback"


def _cookie_path(services: Services) -> str:
    """Return the path of the cookie: a proxy may have this service below a prefix."""
    return f"{urlsplit(services.credentials.public_url).path.rstrip('/')}{_PATH}"
