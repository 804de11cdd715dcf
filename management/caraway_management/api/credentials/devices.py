"""Sign-in of command lines: `caraway login` waits until its user approves it in a browser."""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import JSONResponse, Response

from caraway_management.api.access import Caller, GivenServices, needs_credential
from caraway_management.api.credentials import browser, pages
from caraway_management.api.credentials.signing_in import address_of
from caraway_management.credentials import attempts, devices
from caraway_management.credentials.devices import LIFETIME, POLL_S
from caraway_management.domain import identity, names, refusals
from caraway_management.domain.identity import CredentialKind
from caraway_management.domain.refusals import RefusedError
from caraway_management.domain.scopes import Role
from caraway_management.secrets import api_keys
from caraway_management.services import Services
from caraway_management.store.tables import DeviceSignIn, Member, Org, Project, User

router = APIRouter(tags=["device sign-in"])
UserCode = Annotated[str, Path(max_length=20)]
_NO_STORE = {"cache-control": "no-store"}
_BEGUN, _GUESSES = 100, 20


class CodeBody(BaseModel):
    """The code of a command line that waits."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(max_length=200)


@router.post("/v1/device-sign-ins", status_code=201)
async def create_device_sign_in(request: Request, services: GivenServices) -> Response:
    """Begin a sign-in.

    Only in Caraway. The command line shows `user_code`, and polls with `code`.
    """
    now, address = services.now(), address_of(request)
    async with services.database.change() as session:
        await attempts.count(session, now, {attempts.key("device", address): _BEGUN})
        row, code = await devices.add_sign_in(session, now, address)
    base = services.credentials.public_url
    body = {
        "code": code,
        "user_code": row.user_code,
        "verification_url": f"{base}/auth/token",
        "verification_url_complete": f"{base}/auth/token?code={row.user_code}",
        "expires_in": int(LIFETIME.total_seconds()),
        "interval": POLL_S,
    }
    return JSONResponse(body, 201, _NO_STORE)


@router.get("/v1/device-sign-ins/{userCode}")
async def get_device_sign_in(
    caller: Annotated[Caller, needs_credential()], userCode: UserCode
) -> dict[str, object]:
    """Return a sign-in that waits, with its origin, so that its user can recognize it.

    Only in Caraway.
    """
    return _shown(await _look(caller, userCode))


@router.post("/v1/device-sign-ins/{userCode}/approve")
async def approve_device_sign_in(
    caller: Annotated[Caller, needs_credential()], userCode: UserCode
) -> dict[str, object]:
    """Let a command line act as the caller, who sends a session. Only in Caraway."""
    return await _decide(caller, userCode, is_approved=True)


@router.post("/v1/device-sign-ins/{userCode}/deny")
async def deny_device_sign_in(
    caller: Annotated[Caller, needs_credential()], userCode: UserCode
) -> dict[str, object]:
    """Refuse a command line. Only in Caraway."""
    return await _decide(caller, userCode, is_approved=False)


@router.post("/auth/token/exchange")
async def exchange_device_code(body: CodeBody, services: GivenServices) -> Response:
    """Return the token of a command line: 202 while its user has not decided. Once only."""
    async with services.database.change() as session:
        result = await devices.redeem(session, services.now(), body.code)
    if result == "pending":
        return JSONResponse({"status": "pending"}, 202, _NO_STORE)
    token = None if isinstance(result, str) else result.value
    answer = {"access_token": token, "access_denied": token is None}
    return JSONResponse(answer, headers=_NO_STORE)


@router.get("/api/spice-cli/auth")
async def get_cli_context(
    caller: Annotated[Caller, needs_credential("apps:read")],
    org_name: Annotated[str | None, Query(max_length=255)] = None,
) -> dict[str, object]:
    """Return who the command line acts for: the user, an organization and its first project.

    `api_key` is null for viewers, who may not read keys.
    """
    credential = caller.credential
    if credential.user_id is None:
        raise refusals.forbidden("a machine does not sign in; use a credential of a user")
    query = (
        select(Org, Member.role)
        .join(Member, Member.org_id == Org.id)
        .where(Member.user_id == credential.user_id, Org.deleted_at.is_(None))
        .order_by(Org.id)
        .limit(1)
    )
    if credential.org_id is not None:
        query = query.where(Org.id == credential.org_id)
    if org_name is not None:
        query = query.where(Org.name_key == names.key(org_name))
    elif credential.home_org_id is not None:
        query = query.where(Org.id == credential.home_org_id)
    async with caller.services.database.read() as session:
        user = await session.get_one(User, credential.user_id)
        row = (await session.execute(query)).one_or_none()
        if row is None and org_name is not None:
            raise refusals.not_found("organization", org_name)
        org, role = row or (None, "")
        app = await _first_project(session, caller.services, org, role) if org else None
    shown = {"id": org.id, "name": org.name} if org else None
    return {"username": user.username, "email": user.email, "org": shown, "app": app}


async def _first_project(
    session: AsyncSession, services: Services, org: Org, role: str
) -> dict[str, object] | None:
    of_org = (Project.org_id == org.id, Project.deleted_at.is_(None))
    project = await session.scalar(select(Project).where(*of_org).order_by(Project.id).limit(1))
    if project is None:
        return None
    is_viewer = Role(role) is Role.VIEWER
    keys = {} if is_viewer else await api_keys.read(session, services.sealer, project.id)
    return {"id": project.id, "name": project.name, "api_key": keys.get(1)}


@router.get("/auth/token", include_in_schema=False)
async def show_device_sign_in(
    request: Request, services: GivenServices, code: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Ask the user, who signs in first, whether a command line may act for them."""
    visitor = await browser.find_visitor(request, services)
    if visitor is None:
        return browser.to_sign_in(request)
    action = pages.address(request, "/auth/token")
    if not code:
        content = (
            f'<form method="get" action="{action}"><label>Code that the command line shows'
            '<input name="code" required></label><button>Next</button></form>'
        )
        return pages.page("Sign in a command line", content)
    try:
        row = await _look(visitor.caller, code)
    except RefusedError as exc:
        return pages.page("Sign in a command line", f"<p>{escape(exc.message)}</p>", exc.status)
    content = (
        f"<p>A command line at <b>{escape(row.address)}</b> wants to act for you, "
        f"<b>{escape(visitor.caller.actor)}</b>. Approve it only if it is yours and shows the "
        f"code <b>{escape(row.user_code)}</b>.</p>"
    )
    fields = pages.hidden(csrf=visitor.csrf, code=row.user_code)
    return pages.page("Sign in a command line", content + pages.decision(action, fields))


@router.post("/auth/token", include_in_schema=False)
async def decide_device_sign_in(request: Request, services: GivenServices) -> Response:
    """Approve or deny a command line."""
    visitor, fields = await browser.decided(request, services)
    is_approved = fields["decision"] == "approve"
    await _decide(visitor.caller, fields.get("code", "")[:20], is_approved=is_approved)
    return pages.page("Approved" if is_approved else "Denied", "<p>You can close this page.</p>")


async def _look(caller: Caller, user_code: str) -> DeviceSignIn:
    """Return a sign-in that waits. Codes that wait nowhere are counted: they may be guesses."""
    _require_session(caller)
    now = caller.services.now()
    guesses = {attempts.key("user code", caller.credential.name): _GUESSES}
    async with caller.services.database.change() as session:
        await attempts.count(session, now, guesses)
    async with caller.services.database.change() as session:
        row = await devices.find_pending(session, now, user_code)
        await attempts.forgive(session, guesses)
    return row


async def _decide(caller: Caller, user_code: str, *, is_approved: bool) -> dict[str, object]:
    await _look(caller, user_code)
    user_id = identity.require_person(caller.credential)
    async with caller.change() as change:
        row = await devices.find_pending(change.session, change.now, user_code)
        devices.decide(row, user_id, is_approved=is_approved)
        change.on("device_sign_in", row.id)
    return _shown(row)


def _require_session(caller: Caller) -> None:
    if caller.credential.kind is not CredentialKind.SESSION:
        raise refusals.forbidden("only a session may do this: sign in on the web page")


def _shown(row: DeviceSignIn) -> dict[str, object]:
    return {
        "user_code": row.user_code,
        "state": row.state,
        "address": row.address,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
