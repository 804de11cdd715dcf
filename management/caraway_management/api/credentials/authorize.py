"""`/oauth/authorize`: a user grants an OAuth client a part of what the user may do."""

from html import escape
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Request
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import RedirectResponse, Response

from caraway_management.api.access import GivenServices
from caraway_management.api.credentials import browser, pages
from caraway_management.api.credentials.browser import Visitor
from caraway_management.credentials import grants
from caraway_management.credentials.grants import AuthorizationRequest
from caraway_management.credentials.oauth import GrantError
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services
from caraway_management.store.tables import Member, Org

router = APIRouter(include_in_schema=False)
_PARAMETERS = (
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
)
_MOST_ORGS = 200


@router.get("/oauth/authorize")
async def show_grant(request: Request, services: GivenServices) -> Response:
    """Ask the user, who signs in first."""
    parameters = browser.query_of(request)
    async with services.database.read() as session:
        try:
            client, uri = await grants.check_client(session, services.now(), parameters)
        except RefusedError as exc:
            return pages.page("This link does not work", f"<p>{escape(exc.message)}</p>", 400)
        try:
            asked = grants.check_request(client, uri, parameters, services.credentials.public_url)
        except GrantError as exc:
            return _back(services, uri, parameters.get("state"), exc)
    visitor = await browser.find_visitor(request, services)
    if visitor is None:
        return browser.to_sign_in(request)
    async with services.database.read() as session:
        orgs = await _orgs(session, visitor)
    return _page(
        request, asked, visitor, orgs, {name: parameters.get(name) for name in _PARAMETERS}
    )


@router.post("/oauth/authorize")
async def grant_access(request: Request, services: GivenServices) -> Response:
    """Send the browser back to the client, with a code if the user approves."""
    visitor, fields = await browser.decided(request, services)
    async with visitor.caller.change() as change:
        client, uri = await grants.check_client(change.session, change.now, fields)
        change.on("oauth_client", client.client_id, client.name)
        state = fields.get("state")
        try:
            asked = grants.check_request(client, uri, fields, services.credentials.public_url)
            if fields["decision"] == "deny":
                raise GrantError("access_denied", "the user denied access")
        except GrantError as exc:
            return _back(services, uri, state, exc)
        org_id = await _chosen(change.session, visitor, fields.get("org_id", ""))
        code = await grants.add_code(change.session, change.now, asked, visitor.user_id, org_id)
    return _sent(services, uri, state, code=code)


async def _orgs(session: AsyncSession, visitor: Visitor) -> list[Org]:
    return list(
        await session.scalars(
            select(Org)
            .join(Member, Member.org_id == Org.id)
            .where(Member.user_id == visitor.user_id, Org.deleted_at.is_(None))
            .order_by(Org.name)
            .limit(_MOST_ORGS)
        )
    )


async def _chosen(session: AsyncSession, visitor: Visitor, text: str) -> int | None:
    if not text:
        return None
    org = next((org for org in await _orgs(session, visitor) if str(org.id) == text), None)
    if org is None:
        raise refusals.forbidden("you are not a member of this organization", "org_forbidden")
    return org.id


def _page(
    request: Request,
    asked: AuthorizationRequest,
    visitor: Visitor,
    orgs: list[Org],
    parameters: dict[str, str | None],
) -> Response:
    options = "".join(f'<option value="{org.id}">{escape(org.name)}</option>' for org in orgs)
    scopes = "".join(f"<li>{escape(scope)}</li>" for scope in asked.scopes)
    where = escape(urlsplit(asked.redirect_uri).netloc)
    content = (
        f"<p>The program <b>{escape(asked.client.name)}</b>, which registered itself here, wants "
        f"to act for you, <b>{escape(visitor.caller.actor)}</b>. It gets the answer at "
        f"<b>{where}</b>. It may use:</p><ul>{scopes}</ul>"
    )
    fields = (
        pages.hidden(csrf=visitor.csrf, **parameters)
        + '<label>In<select name="org_id"><option value="">all organizations</option>'
        + f"{options}</select></label>"
    )
    form = pages.decision(pages.address(request, "/oauth/authorize"), fields)
    return pages.page("Grant access", content + form, redirects_to=asked.redirect_uri)


def _back(services: Services, uri: str, state: str | None, exc: GrantError) -> Response:
    return _sent(services, uri, state, error=exc.code, error_description=exc.message)


def _sent(services: Services, uri: str, state: str | None, **answer: str) -> Response:
    answer["iss"] = services.credentials.public_url
    if state is not None:
        answer["state"] = state
    mark = "&" if urlsplit(uri).query else "?"
    return RedirectResponse(f"{uri}{mark}{urlencode(answer)}", 303, {"cache-control": "no-store"})
