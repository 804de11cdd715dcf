"""`/auth/oidc`: sign-in by the OIDC issuer of the installation."""

import hmac
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from sqlalchemy import delete
from starlette.responses import RedirectResponse, Response

from caraway_management import accounts
from caraway_management.api.access import GivenServices
from caraway_management.api.credentials import browser, signing_in
from caraway_management.credentials import values
from caraway_management.credentials.oidc import Oidc
from caraway_management.domain import grants, refusals
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
    oidc = _configured(services)
    grants.check_return(return_to)
    visitor = await browser.find_visitor(request, services) if link else None
    if link and visitor is None:
        return browser.to_sign_in(request)
    now = services.now()
    begun = await oidc.begin(_callback(services), now)
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
    # Only the browser that began may finish: nobody can sign another one in.
    response.set_cookie(
        _COOKIE,
        begun.state,
        max_age=int(_LIFETIME.total_seconds()),
        path=_PATH,
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
    oidc = _configured(services)
    now = services.now()
    if not hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), state.encode()):
        raise refusals.forbidden("the sign-in did not begin in this browser", "csrf_mismatch")
    async with services.database.change() as session:
        begun = await session.get(SignIn, values.digest(state), with_for_update=True)
        if begun is not None:
            await session.delete(begun)
    if begun is None or begun.expires_at <= now:
        raise refusals.invalid("the sign-in is unknown, expired or finished; begin again")
    if iss is not None and iss != oidc.settings.issuer:
        raise refusals.forbidden("the answer is from another issuer")
    if not code:
        raise refusals.forbidden("the identity provider did not sign you in")
    found = await oidc.finish(code, begun.nonce, begun.verifier, _callback(services), now)
    async with services.database.change() as session:
        user = await accounts.user_of_identity(
            session,
            now,
            found,
            adds_users=oidc.settings.adds_users,
            link_to=begun.user_id,
        )
    made = await signing_in.open_session(request, services, user)
    response = RedirectResponse(begun.return_to, 303, {"cache-control": "no-store"})
    response.delete_cookie(_COOKIE, path=_PATH)
    signing_in.set_cookie(response, request, services, made.value)
    return response


def _configured(services: Services) -> Oidc:
    if services.oidc is None:
        raise refusals.not_found("an OIDC issuer of this installation")
    return services.oidc


def _callback(services: Services) -> str:
    return f"{services.credentials.public_url.rstrip('/')}{_PATH}/callback"
