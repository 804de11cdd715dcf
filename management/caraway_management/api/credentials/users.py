"""`/v1/users`: the users of the installation, for its administrators. Only in Caraway."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import accounts
from caraway_management.api.access import MOST_ID, Caller, needs_credential
from caraway_management.api.credentials.whoami import shown
from caraway_management.api.paging import Paged
from caraway_management.credentials import sessions
from caraway_management.domain import identity, names, passwords, refusals
from caraway_management.store.tables import User

router = APIRouter(prefix="/v1/users", tags=["users"])
UserId = Annotated[int, Path(ge=1, le=MOST_ID)]


class UserBody(BaseModel):
    """A new user."""

    model_config = ConfigDict(extra="forbid")

    username: str
    password: str | None = Field(None, max_length=1_000)
    email: str | None = Field(
        None,
        max_length=255,
        pattern=r"^[^\s@]+@[^\s@]+$",
        description="Known to be the user's: an OIDC identity with it is this user.",
    )
    is_administrator: bool = False


class UserPasswordBody(BaseModel):
    """A new password of a user."""

    model_config = ConfigDict(extra="forbid")

    password: str = Field(max_length=1_000)


@router.get("")
async def list_users(
    caller: Annotated[Caller, needs_credential("credentials:read")], page: Paged
) -> dict[str, object]:
    """List the users of the installation, for an administrator. Only in Caraway."""
    identity.require_administrator(caller.credential)
    query = select(User).where(User.deleted_at.is_(None)).order_by(User.id)
    async with caller.services.database.read() as session:
        rows = list(await session.scalars(query.limit(page.limit).offset(page.offset)))
    return {"users": [shown(row) for row in rows]}


@router.post("", status_code=201)
async def create_user(
    body: UserBody, caller: Annotated[Caller, needs_credential("credentials:write")]
) -> dict[str, object]:
    """Add a user, as an administrator of the installation. Only in Caraway."""
    identity.require_administrator(caller.credential)
    username = names.check_user(body.username)
    email = names.check_text(body.email, "email", 255) if body.email else None
    hashed = None
    if body.password is not None:
        password = passwords.check_password(body.password, username)
        hashed = await caller.services.passwords.hash(password)
    async with caller.change() as change:
        user = await accounts.add_user(
            change.session,
            change.now,
            username,
            email=email,
            password_hash=hashed,
            is_administrator=body.is_administrator,
        )
        change.on("user", user.id, username)
    return shown(user)


@router.get("/{userId}")
async def get_user(
    caller: Annotated[Caller, needs_credential("credentials:read")], userId: UserId
) -> dict[str, object]:
    """Return a user of the installation, for an administrator. Only in Caraway."""
    identity.require_administrator(caller.credential)
    async with caller.services.database.read() as session:
        return shown(await _find(session, userId))


@router.put("/{userId}/password", status_code=204)
async def set_user_password(
    body: UserPasswordBody,
    caller: Annotated[Caller, needs_credential("credentials:write")],
    userId: UserId,
) -> None:
    """Set the password of a user, as an administrator. Only in Caraway. The user's sessions end."""
    identity.require_administrator(caller.credential)
    async with caller.services.database.read() as session:
        username = (await _find(session, userId)).username
    password = passwords.check_password(body.password, username)
    hashed = await caller.services.passwords.hash(password)
    async with caller.change() as change:
        (await _find(change.session, userId)).password_hash = hashed
        await sessions.end_sessions(change.session, userId)
        change.on("user", userId, username)


@router.delete("/{userId}", status_code=204)
async def delete_user(
    caller: Annotated[Caller, needs_credential("credentials:write")], userId: UserId
) -> None:
    """Delete a user, as an administrator.

    Only in Caraway. All credentials of the user end at once.
    """
    if identity.require_administrator(caller.credential) == userId:
        raise refusals.conflict("administrators cannot delete themselves")
    async with caller.change() as change:
        user = await _find(change.session, userId)
        await accounts.delete_user(change.session, change.now, user)
        change.on("user", userId, user.username)


async def _find(session: AsyncSession, user_id: int) -> User:
    user = await session.get(User, user_id)
    if user is None or user.deleted_at is not None:
        raise refusals.not_found("user", user_id)
    return user
