"""Organizations."""

from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import select

from caraway_management.api.access import Caller, needs_credential
from caraway_management.domain.identity import CredentialKind
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Member, Org

router = APIRouter(tags=["organizations"])


@router.get("/v1/orgs")
async def list_organizations(
    caller: Annotated[Caller, needs_credential("apps:read")],
) -> dict[str, Any]:
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
