"""`/v1/whoami`: the credential of the request, and the password of its user. Only in Caraway."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from caraway_management.api.access import Caller, needs_credential
from caraway_management.api.credentials import signing_in
from caraway_management.api.credentials.sessions import current_id
from caraway_management.credentials import sessions
from caraway_management.domain import identity, passwords
from caraway_management.store.tables import Org, User

router = APIRouter(prefix="/v1/whoami", tags=["users"])


class PasswordBody(BaseModel):
    """A new password, and the one of now if there is one."""

    model_config = ConfigDict(extra="forbid")

    password: str = Field(max_length=1_000)
    current_password: str = Field("", max_length=1_000)


@router.get("")
async def get_whoami(caller: Annotated[Caller, needs_credential()]) -> dict[str, object]:
    """Return the credential of the request with its scopes. Only in Caraway.

    `org` is the only organization that it acts for, or null.
    """
    credential = caller.credential
    async with caller.services.database.read() as session:
        user = await session.get(User, credential.user_id) if credential.user_id else None
        org = await session.get(Org, credential.org_id) if credential.org_id else None
    return {
        "kind": credential.kind,
        "credential_id": credential.id,
        "name": credential.name,
        "user": shown(user) if user else None,
        "org": {"id": org.id, "name": org.name} if org else None,
        "scopes": sorted(credential.scopes),
        "expires_at": credential.expires_at,
    }


@router.put("/password", status_code=204)
async def set_password(
    body: PasswordBody, caller: Annotated[Caller, needs_credential("credentials:write")]
) -> None:
    """Set the caller's password. Only in Caraway. Other sessions of the caller end."""
    user_id = identity.require_person(caller.credential)
    services = caller.services
    password = passwords.check_password(body.password, caller.credential.name)
    async with services.database.read() as session:
        has_one = (await session.get_one(User, user_id)).password_hash is not None
    if has_one:
        await signing_in.check_password(
            services,
            caller.credential.name,
            body.current_password,
            signing_in.address_of(caller.request),
        )
    hashed = await services.passwords.hash(password)
    async with caller.change() as change:
        (await change.session.get_one(User, user_id)).password_hash = hashed
        await sessions.end_sessions(change.session, user_id, but=current_id(caller))
        change.on("user", user_id, caller.actor)


def shown(user: User) -> dict[str, Any]:
    """Return a user as responses show it."""
    return {
        "id": user.id,
        "username": user.username,
        "email": user.email,
        "is_administrator": user.is_administrator,
        "has_password": user.password_hash is not None,
        "created_at": user.created_at,
    }
