"""Members and invitations of an organization."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from caraway_management.api.access import MOST_ID, Caller, needs, needs_credential
from caraway_management.api.bodies import Body
from caraway_management.api.paging import Paged
from caraway_management.api.revisions import TAKES_IF_MATCH, check_if_match, set_etag
from caraway_management.domain import memberships
from caraway_management.domain.scopes import Role
from caraway_management.organizations import invitations, inviting, members
from caraway_management.organizations.members import Membership
from caraway_management.store.tables import Invitation

router = APIRouter(tags=["members"])
UserId = Annotated[int, Path(alias="userId", ge=1, le=MOST_ID)]
InvitationId = Annotated[int, Path(alias="invitationId", ge=1, le=MOST_ID)]


class NewMember(Body):
    """A user who becomes a member, with one role."""

    username: str
    roles: list[str] = ["member"]  # noqa: RUF012 - Pydantic copies it.


class ChangedMember(Body):
    """The role of a member."""

    roles: list[str]


class InvitationBody(Body):
    """An invitation of a person who may have no user yet."""

    email: str
    roles: list[str] = ["member"]  # noqa: RUF012


class Accepted(Body):
    """The value of an invitation."""

    value: str


def view(member: Membership) -> dict[str, object]:
    """Return a member as JSON."""
    return {
        "user_id": member.row.user_id,
        "username": member.username,
        "roles": [member.role],
        "is_owner": member.role is Role.OWNER,
        "created_at": member.row.created_at.isoformat(),
    }


@router.get("/v1/members")
async def list_members(
    caller: Annotated[Caller, needs("members:read")], page: Paged
) -> dict[str, object]:
    """List the members of the organization."""
    async with caller.services.database.read() as session:
        found = await members.list_members(session, caller.org.id, page.limit, page.offset)
    return {"members": [view(each) for each in found]}


@router.post("/v1/members", status_code=201)
async def add_member(
    body: NewMember, caller: Annotated[Caller, needs("members:write")], response: Response
) -> dict[str, object]:
    """Make a user of the installation a member, with at most the role of the caller."""
    role = memberships.read_roles(body.roles)
    async with caller.change() as change:
        added = await members.add(change.session, change.now, caller.within, body.username, role)
        change.on("member", added.row.user_id, added.username)
    set_etag(response, added.row.revision)
    return view(added)


@router.get("/v1/members/{userId}")
async def get_member(
    user_id: UserId, caller: Annotated[Caller, needs("members:read")], response: Response
) -> dict[str, object]:
    """Return a member."""
    async with caller.services.database.read() as session:
        membership = await members.find(session, caller.org.id, user_id)
    set_etag(response, membership.row.revision)
    return view(membership)


@router.patch("/v1/members/{userId}", dependencies=TAKES_IF_MATCH)
async def update_member(
    user_id: UserId,
    body: ChangedMember,
    caller: Annotated[Caller, needs("members:write")],
    response: Response,
) -> dict[str, object]:
    """Give a member another role. Owners are changed by themselves only."""
    role = memberships.read_roles(body.roles)
    async with caller.change() as change:
        changed = await members.find(change.session, caller.org.id, user_id, locks=True)
        change.on("member", user_id, changed.username)
        check_if_match(caller.request, changed.row.revision)
        await members.change(change.session, caller.within, changed, role)
    set_etag(response, changed.row.revision)
    return view(changed)


@router.delete("/v1/members/{userId}", status_code=204, dependencies=TAKES_IF_MATCH)
async def remove_member(
    user_id: UserId, caller: Annotated[Caller, needs("members:delete")]
) -> None:
    """Remove a member. Owners are removed by themselves only."""
    async with caller.change() as change:
        removed = await members.find(change.session, caller.org.id, user_id, locks=True)
        change.on("member", user_id, removed.username)
        check_if_match(caller.request, removed.row.revision)
        await members.remove(change.session, caller.within, removed)


def view_invitation(invitation: Invitation) -> dict[str, object]:
    """Return an invitation as JSON, without its value."""
    return {
        "id": invitation.id,
        "email": invitation.email,
        "roles": [invitation.role],
        "invited_by": invitation.invited_by or None,
        "created_at": invitation.created_at.isoformat(),
        "expires_at": invitation.expires_at.isoformat(),
    }


@router.get("/v1/invitations")
async def list_invitations(
    caller: Annotated[Caller, needs("members:write")], page: Paged
) -> dict[str, object]:
    """List the open invitations of the organization. Only in Caraway."""
    async with caller.services.database.read() as session:
        found = await invitations.list_open(
            session, caller.services.now(), caller.org.id, page.limit, page.offset
        )
    return {"invitations": [view_invitation(each) for each in found]}


@router.post("/v1/invitations", status_code=201)
async def create_invitation(
    body: InvitationBody, caller: Annotated[Caller, needs("members:write")]
) -> dict[str, object]:
    """Invite a person for seven days. The `value` is shown once, for you to hand on.

    Only in Caraway.

    If the installation has a mail server, `is_mailed` is true: the address gets a link to join.
    """
    role = memberships.read_roles(body.roles)
    async with caller.change() as change:
        invitation = await invitations.make(
            change.session, change.now, caller.within, body.email, role
        )
        change.on("invitation", invitation.row.id, invitation.row.email)
        is_mailed = await inviting.enqueue(
            change.session, change.now, caller.services, invitation, caller.actor
        )
    return {**view_invitation(invitation.row), "value": invitation.value, "is_mailed": is_mailed}


@router.delete("/v1/invitations/{invitationId}", status_code=204)
async def revoke_invitation(
    invitation_id: InvitationId, caller: Annotated[Caller, needs("members:write")]
) -> None:
    """Revoke an open invitation. Only in Caraway."""
    async with caller.change() as change:
        revoked = await invitations.revoke(change.session, change.now, caller.org.id, invitation_id)
        change.on("invitation", revoked.id, revoked.email)


@router.post("/v1/invitations/accept", status_code=201)
async def accept_invitation(
    body: Accepted, caller: Annotated[Caller, needs_credential("members:write")]
) -> dict[str, object]:
    """Make the user of the credential a member of the organization that invites.

    Only in Caraway.
    """
    async with caller.change() as change:
        org, membership = await invitations.accept(
            change.session, change.now, caller.credential, body.value
        )
        change.on("member", membership.row.user_id, membership.username, org_id=org.id)
    return {"org": {"id": org.id, "name": org.name, "role": membership.role}}
