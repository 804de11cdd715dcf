"""`/join`: the page that the link of an invitation leads to."""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from caraway_management.api.access import GivenServices
from caraway_management.api.credentials import browser, pages
from caraway_management.domain.refusals import RefusedError
from caraway_management.organizations import invitations, inviting

router = APIRouter(include_in_schema=False)
_TITLE = "Join an organization"


@router.get(inviting.PATH)
async def show_invitation(
    request: Request, services: GivenServices, value: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Ask the user, who signs in first, whether to join."""
    visitor = await browser.find_visitor(request, services)
    if visitor is None:
        return browser.to_sign_in(request)
    try:
        async with services.database.read() as session:
            invitation, org = await invitations.look(session, services.now(), value)
    except RefusedError as exc:
        return pages.page(_TITLE, f"<p>{escape(exc.message)}</p>", exc.status)
    content = (
        f"<p>You are invited to the organization <b>{escape(org.name)}</b>, with the role "
        f"<b>{escape(invitation.role)}</b>. You are signed in as "
        f"<b>{escape(visitor.caller.actor)}</b>.</p>"
    )
    form = pages.decision(
        pages.address(request, inviting.PATH), pages.hidden(csrf=visitor.csrf, value=value)
    )
    return pages.page(_TITLE, content + form)


@router.post(inviting.PATH)
async def join_organization(request: Request, services: GivenServices) -> Response:
    """Make the user a member."""
    visitor, fields = await browser.decided(request, services)
    if fields["decision"] == "deny":
        return pages.page(_TITLE, "<p>You did not join.</p>")
    caller = visitor.caller
    try:
        async with caller.change() as change:
            org, membership = await invitations.accept(
                change.session, change.now, caller.credential, fields.get("value", "")
            )
            change.on("member", visitor.user_id, membership.username, org_id=org.id)
    except RefusedError as exc:
        return pages.page(_TITLE, f"<p>{escape(exc.message)}</p>", exc.status)
    return pages.page(_TITLE, f"<p>You are a member of <b>{escape(org.name)}</b>.</p>")
