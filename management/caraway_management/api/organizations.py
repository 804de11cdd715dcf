"""Organizations: listed, created, renamed, left and deleted, and their plan."""

from typing import Annotated

from fastapi import APIRouter, Response
from sqlalchemy import select

from caraway_management import accounts
from caraway_management.api.access import (
    Caller,
    OrgId,
    needs_credential,
    needs_in_path,
    parse_org_id,
)
from caraway_management.api.bodies import Body
from caraway_management.api.revisions import TAKES_IF_MATCH, check_if_match, set_etag
from caraway_management.deployments import applying
from caraway_management.domain import identity, refusals
from caraway_management.domain.identity import CredentialKind
from caraway_management.domain.scopes import Role
from caraway_management.limiting import spreading
from caraway_management.organizations import editing, members
from caraway_management.projects import editing as editing_projects
from caraway_management.projects import finding
from caraway_management.store.tables import Member, Org

router = APIRouter(tags=["organizations"])


class NewOrganization(Body):
    """A new organization. Its handle is unique in the installation, without case."""

    name: str


class ChangedOrganization(Body):
    """A change of an organization."""

    name: str | None = None


class ChosenPlan(Body):
    """The plan of an organization."""

    plan: str


def view(org: Org, role: Role | None = None) -> dict[str, object]:
    """Return an organization as JSON."""
    shown = {
        "id": org.id,
        "name": org.name,
        "plan": org.plan,
        "revision": org.revision,
        "created_at": org.created_at.isoformat(),
    }
    return shown if role is None else {**shown, "role": role}


@router.get("/v1/orgs")
async def list_organizations(
    caller: Annotated[Caller, needs_credential("apps:read")],
) -> dict[str, object]:
    """List the organizations that the credential can reach."""
    credential = caller.credential
    query = select(Org.id, Org.name).where(Org.deleted_at.is_(None)).order_by(Org.id)
    if credential.org_id is not None:
        query = query.where(Org.id == credential.org_id)
    async with caller.services.database.read() as session:
        if credential.kind is CredentialKind.MACHINE:
            found = [(*row, Role.OWNER) for row in await session.execute(query)]
        else:
            mine = query.add_columns(Member.role).join(
                Member, (Member.org_id == Org.id) & (Member.user_id == (credential.user_id or 0))
            )
            found = [tuple(row) for row in await session.execute(mine)]
    return {"orgs": [{"id": id_, "name": name, "role": role} for id_, name, role in found]}


@router.post("/v1/orgs", status_code=201)
async def create_organization(
    body: NewOrganization,
    caller: Annotated[Caller, needs_credential("orgs:write")],
    response: Response,
) -> dict[str, object]:
    """Create an organization. Its owner is the user of the credential. Only in Caraway."""
    credential = caller.credential
    if credential.user_id is None or credential.org_id is not None:
        raise refusals.forbidden(
            "a credential that acts for one organization creates no others; sign in as a user"
        )
    async with caller.change() as change:
        org = await editing.create(change.session, change.now, body.name, credential.user_id)
        change.on("organization", org.id, org.name, org_id=org.id)
    set_etag(response, org.revision)
    return view(org, Role.OWNER)


@router.get("/v1/orgs/{orgId}")
async def get_organization(
    caller: Annotated[Caller, needs_in_path("apps:read")], response: Response
) -> dict[str, object]:
    """Return an organization, with the role of the caller and the usage of its plan.

    Only in Caraway.
    """
    now = caller.services.now()
    async with caller.services.database.read() as session:
        org = await session.get_one(Org, caller.org.id)
        usage = {
            "apps": await editing_projects.count(session, org.id),
            "users": await members.count(session, org.id)
            + await members.count_invitations(session, org.id, now),
        }
    set_etag(response, org.revision)
    return {**view(org, caller.role), "usage": usage}


@router.patch("/v1/orgs/{orgId}", dependencies=TAKES_IF_MATCH)
async def update_organization(
    body: ChangedOrganization,
    caller: Annotated[Caller, needs_in_path("orgs:write")],
    response: Response,
) -> dict[str, object]:
    """Change the handle of an organization. Only in Caraway."""
    async with caller.change() as change:
        org = await editing.find(change.session, caller.org.id)
        check_if_match(caller.request, org.revision)
        if body.name is not None:
            await editing.rename(change.session, org, body.name)
        change.on("organization", org.id, org.name)
    set_etag(response, org.revision)
    return view(org, caller.role)


@router.delete("/v1/orgs/{orgId}", status_code=204, dependencies=TAKES_IF_MATCH)
async def delete_organization(
    caller: Annotated[Caller, needs_in_path("orgs:delete")],
) -> None:
    """Delete an organization. Its runtimes end, and it refuses requests from then on.

    Only in Caraway.
    """
    async with caller.change() as change:
        org = await editing.find(change.session, caller.org.id)
        change.on("organization", org.id, org.name)
        check_if_match(caller.request, org.revision)
        for project in await finding.lock_all(change.session, org.id):
            editing_projects.delete(project, change.now)
            await applying.remove_project(change.session, change.now, project)
        await editing.delete(change.session, org, change.now)


@router.post("/v1/orgs/{orgId}/leave", status_code=204)
async def leave_organization(
    caller: Annotated[Caller, needs_in_path("members:read")],
) -> None:
    """End the caller's own membership. The last owner cannot. Only in Caraway."""
    user_id = caller.credential.user_id
    identity.require_scope(caller.credential, "members:delete")
    if user_id is None:
        raise refusals.forbidden("a machine is no member; delete its OAuth client instead")
    async with caller.change() as change:
        left = await members.find(change.session, caller.org.id, user_id, locks=True)
        await members.remove(change.session, caller.within, left)
        change.on("member", user_id, left.username)


@router.put("/v1/orgs/{orgId}/plan", dependencies=TAKES_IF_MATCH)
async def set_organization_plan(
    orgId: OrgId,
    body: ChosenPlan,
    caller: Annotated[Caller, needs_credential("orgs:write")],
    response: Response,
) -> dict[str, object]:
    """Set the plan of any organization. For administrators of the installation. Only in Caraway."""
    caller.require_administrator()
    async with caller.change() as change:
        org = await editing.find(change.session, parse_org_id(orgId))
        check_if_match(caller.request, org.revision)
        await editing.set_plan(change.session, org, body.plan)
        await spreading.organization_changed(change.session, change.now, org.id)
        change.on("organization", org.id, org.name, org_id=org.id)
        limits = await accounts.read_plan(change.session, org.plan)
    set_etag(response, org.revision)
    return {**view(org), "limits": limits.as_json()}
