"""Pages know who is signed in by the cookie, and read forms."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from caraway_management.api.access import Caller
from caraway_management.api.authenticating import SESSION_COOKIE
from caraway_management.api.credentials import pages
from caraway_management.api.credentials.signing_in import check_same_site
from caraway_management.credentials import authentication, sessions
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 30


@dataclass(frozen=True, slots=True)
class Visitor:
    """A signed-in user in a browser."""

    caller: Caller
    user_id: int
    csrf: str
    """The value that the forms of the page send back."""


async def find_visitor(request: Request, services: Services) -> Visitor | None:
    """Return the signed-in user, if there is one."""
    value = request.cookies.get(SESSION_COOKIE, "")
    if not value.startswith(Prefix.SESSION):
        return None
    now = services.now()
    try:
        async with services.database.read() as session:
            credential = await sessions.find_session(session, value, now)
    except RefusedError:
        return None
    assert credential.user_id is not None
    request.state.credential = credential
    authentication.note_use(services.database, credential, now)
    caller = Caller(services, request, credential, None)
    return Visitor(caller, credential.user_id, sessions.csrf_value(value))


async def decided(request: Request, services: Services) -> tuple[Visitor, dict[str, str]]:
    """Return the signed-in user who sends a form, and its fields.

    Raises:
        RefusedError: no user is signed in, or the form is not one of ours.
    """
    check_same_site(request)
    fields = await read_form(request)
    visitor = await find_visitor(request, services)
    if visitor is None:
        raise refusals.unauthorized("sign in first")
    sessions.check_csrf(request.cookies[SESSION_COOKIE], fields.pop("csrf", None))
    if fields.get("decision") not in ("approve", "deny"):
        raise refusals.invalid_field("decision", "must be approve or deny")
    return visitor, fields


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        RefusedError: the body is not a form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == _FORM:
            body = (await request.body()).decode()
            return dict(
                parse_qsl(
                    body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
                )
            )
    except ValueError:
        pass
    raise refusals.invalid(f"the body must be a form ({_FORM})")


def to_sign_in(request: Request) -> Response:
    """Send the browser to sign in, and back."""
    url = request.url
    back = f"{url.path}?{url.query}" if url.query else url.path
    return go_to(request, f"/sign-in?return_to={quote(back, safe='')}")


def go_to(request: Request, path: str) -> Response:
    """Send the browser to a path of this service."""
    headers = {"cache-control": "no-store"}
    return RedirectResponse(pages.address(request, path), 303, headers)


def query_of(request: Request) -> dict[str, Any]:
    """Return the parameters of a URL; of one that is there twice, none."""
    pairs = request.query_params.multi_items()
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}
