"""`/sign-in`: the page on which users sign in before they approve something."""

from html import escape
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from caraway_management.api.access import GivenServices
from caraway_management.api.credentials import browser, pages, signing_in
from caraway_management.domain import grants
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services

router = APIRouter(include_in_schema=False)
_LONGEST = 1_000


@router.get("/sign-in")
async def show_sign_in(
    request: Request, services: GivenServices, return_to: Annotated[str, Query()] = "/"
) -> Response:
    """Show the form."""
    return _form(request, services, grants.check_return(return_to))


@router.get("/sign-in/ways")
async def list_ways(services: GivenServices) -> dict[str, bool]:
    """Return the ways to sign in, which the console offers."""
    return {"password": True, "oidc": services.oidc is not None}


@router.post("/sign-in")
async def sign_in(request: Request, services: GivenServices) -> Response:
    """Sign in, and go back to the page that requires it."""
    signing_in.check_same_site(request)
    fields = await browser.read_form(request)
    return_to = grants.check_return(fields.get("return_to", "/"))
    username, password = fields.get("username", ""), fields.get("password", "")
    try:
        user = await signing_in.check_password(
            services, username[:_LONGEST], password[:_LONGEST], signing_in.address_of(request)
        )
    except RefusedError as exc:
        return _form(request, services, return_to, exc)
    session = await signing_in.open_session(request, services, user)
    response = browser.go_to(request, return_to)
    signing_in.set_cookie(response, request, services, session.value)
    return response


def _form(
    request: Request, services: Services, return_to: str, refused: RefusedError | None = None
) -> Response:
    problem = f'<p role="alert">{escape(refused.message)}</p>' if refused else ""
    action = escape(pages.address(request, "/sign-in"))
    content = (
        f'{problem}<form method="post" action="{action}">{pages.hidden(return_to=return_to)}'
        '<label>Username<input name="username" autocomplete="username" required></label>'
        '<label>Password<input name="password" type="password" '
        'autocomplete="current-password" required></label><button>Sign in</button></form>'
    )
    if services.oidc is not None:
        path = pages.address(request, f"/auth/oidc?return_to={quote(return_to, safe='')}")
        content += f'<p><a href="{escape(path)}">Sign in with the identity provider</a></p>'
    response = pages.page("Sign in", content, refused.status if refused else 200)
    if refused is not None:
        response.headers.update(refused.headers)
    return response
