"""`/v1/sessions`: sign-in and sign-out with a password, and the sessions of a user.

Only in Caraway.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import delete, select

from caraway_management.api.access import (
    MOST_ID,
    Caller,
    GivenServices,
    needs_credential,
)
from caraway_management.api.authenticating import SESSION_COOKIE
from caraway_management.api.credentials import signing_in
from caraway_management.api.paging import Paged
from caraway_management.credentials import sessions
from caraway_management.credentials.values import Prefix
from caraway_management.domain import identity, refusals
from caraway_management.store.tables import PortalSession

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])
SessionId = Annotated[str, Path(description="An id of the list, or `current`.", max_length=20)]


class SignInBody(BaseModel):
    """A username and a password."""

    model_config = ConfigDict(extra="forbid")

    username: str = Field(max_length=255)
    password: str = Field(max_length=1_000)


@router.post("", status_code=201)
async def create_session(
    body: SignInBody,
    request: Request,
    response: Response,
    services: GivenServices,
) -> dict[str, object]:
    """Sign in.

    Only in Caraway: the cookie `caraway_session` and `access_token` are the same session.

    Requests with the cookie that change something send `csrf_token` as `X-CSRF-Token`.
    """
    signing_in.check_same_site(request)
    user = await signing_in.check_password(
        services, body.username, body.password, signing_in.address_of(request)
    )
    session = await signing_in.open_session(request, services, user)
    signing_in.set_cookie(response, request, services, session.value)
    response.headers["cache-control"] = "no-store"
    return _shown(session.row, session.row.id) | {
        "access_token": session.value,
        "csrf_token": sessions.csrf_value(session.value),
        "user": {"id": user.id, "username": user.username},
    }


@router.get("")
async def list_sessions(
    caller: Annotated[Caller, needs_credential("credentials:read")], page: Paged
) -> dict[str, object]:
    """List the caller's sessions, the newest first. Only in Caraway."""
    user_id = identity.require_person(caller.credential)
    query = (
        select(PortalSession)
        .where(PortalSession.user_id == user_id)
        .order_by(PortalSession.id.desc())
    )
    async with caller.services.database.read() as session:
        rows = list(await session.scalars(query.limit(page.limit).offset(page.offset)))
    return {"sessions": [_shown(row, current_id(caller)) for row in rows]}


@router.get("/{sessionId}")
async def get_session(
    caller: Annotated[Caller, needs_credential("credentials:read")],
    sessionId: SessionId,
    response: Response,
) -> dict[str, object]:
    """Return a session of the caller. `current` also has the `csrf_token` of the cookie.

    Only in Caraway.
    """
    user_id = identity.require_person(caller.credential)
    id_ = _parse(sessionId, caller)
    async with caller.services.database.read() as session:
        row = await session.get(PortalSession, id_)
    if row is None or row.user_id != user_id:
        raise refusals.not_found("session", sessionId)
    shown = _shown(row, current_id(caller))
    cookie = caller.request.cookies.get(SESSION_COOKIE, "")
    if row.id == current_id(caller) and cookie.startswith(Prefix.SESSION):
        response.headers["cache-control"] = "no-store"
        shown["csrf_token"] = sessions.csrf_value(cookie)
    return shown


@router.delete("/{sessionId}", status_code=204)
async def delete_session(
    caller: Annotated[Caller, needs_credential("credentials:write")],
    sessionId: SessionId,
    response: Response,
) -> None:
    """End a session of the caller: sign out with `current`. Only in Caraway."""
    user_id = identity.require_person(caller.credential)
    id_ = _parse(sessionId, caller)
    async with caller.change() as change:
        row = await change.session.get(PortalSession, id_)
        if row is None or row.user_id != user_id:
            raise refusals.not_found("session", sessionId)
        change.on("session", id_, caller.actor)
        await change.session.execute(delete(PortalSession).where(PortalSession.id == id_))
    if id_ == current_id(caller):
        response.delete_cookie(SESSION_COOKIE, path="/")


@router.delete("", status_code=204)
async def delete_sessions(
    caller: Annotated[Caller, needs_credential("credentials:write")], response: Response
) -> None:
    """End all sessions of the caller, this one too. Only in Caraway."""
    user_id = identity.require_person(caller.credential)
    async with caller.change() as change:
        change.on("session", "all", caller.actor)
        await sessions.end_sessions(change.session, user_id)
    response.delete_cookie(SESSION_COOKIE, path="/")


def current_id(caller: Caller) -> int | None:
    """Return the id of the session that sends a request, or None for another credential."""
    kind, _, id_ = caller.credential.id.partition(":")
    return int(id_) if kind == "session" else None


def _parse(text: str, caller: Caller) -> int:
    if text == "current":
        id_ = current_id(caller)
        if id_ is None:
            raise refusals.not_found("session", text)
        return id_
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= MOST_ID:
        raise refusals.not_found("session", text)
    return number


def _shown(row: PortalSession, current: int | None) -> dict[str, object]:
    return {
        "id": row.id,
        "address": row.address,
        "user_agent": row.user_agent,
        "created_at": row.created_at,
        "last_used_at": row.last_used_at,
        "expires_at": row.expires_at,
        "is_current": row.id == current,
    }
