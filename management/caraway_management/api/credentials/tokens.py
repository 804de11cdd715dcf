"""`/v1/tokens`: personal access tokens. Only in Caraway."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.api.access import MOST_ID, Caller, needs_credential
from caraway_management.api.paging import Paged
from caraway_management.credentials import tokens
from caraway_management.domain import grants, names, refusals
from caraway_management.domain.identity import Credential
from caraway_management.store.tables import Member, Org, Token, User

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])
TokenId = Annotated[int, Path(ge=1, le=MOST_ID)]


class TokenBody(BaseModel):
    """A new token."""

    model_config = ConfigDict(extra="forbid")

    name: str
    org_id: int | None = Field(
        None, ge=1, le=MOST_ID, description="The only organization it is for; null: all."
    )
    scopes: list[str] = Field(max_length=50)
    expires_at: AwareDatetime | None = Field(None, description="Null: it does not expire.")


@router.get("")
async def list_tokens(
    caller: Annotated[Caller, needs_credential("credentials:read")], page: Paged
) -> dict[str, object]:
    """List the caller's tokens, the newest first, with those that expired. Only in Caraway.

    `kind` is `personal`, `cli` for one of `caraway login`, or `oauth` for what the caller granted
    to an OAuth client.
    """
    user_id = _user_of(caller.credential)
    query = select(Token).where(Token.user_id == user_id, Token.revoked_at.is_(None))
    if caller.credential.org_id is not None:
        query = query.where(Token.org_id == caller.credential.org_id)
    query = query.order_by(Token.id.desc()).limit(page.limit).offset(page.offset)
    async with caller.services.database.read() as session:
        rows = list(await session.scalars(query))
    return {"tokens": [_shown(row) for row in rows]}


@router.post("", status_code=201)
async def create_token(
    body: TokenBody,
    caller: Annotated[Caller, needs_credential("credentials:write")],
    response: Response,
) -> dict[str, object]:
    """Make a personal access token.

    Only in Caraway. `token` is its value, which is shown only here.

    It has no scope, organization or lifetime that the credential which makes it lacks.
    """
    credential, now = caller.credential, caller.services.now()
    user_id = _user_of(credential)
    names.check_text(body.name, "name")
    scopes = grants.check_scopes(body.scopes, credential.scopes)
    expires_at = grants.check_expiry(body.expires_at, now, credential.expires_at)
    org_id = body.org_id
    if credential.org_id is not None and org_id != credential.org_id:
        raise refusals.invalid_field("org_id", "must be the organization of the credential itself")
    async with caller.change() as change:
        if org_id is not None:
            await _check_member(change.session, user_id, org_id)
        user = await change.session.get_one(User, user_id)
        token = await tokens.add_token(
            change.session,
            now,
            user,
            body.name,
            scopes=scopes,
            org_id=org_id,
            expires_at=expires_at,
        )
        change.on("token", token.row.id, body.name)
    response.headers["cache-control"] = "no-store"
    return _shown(token.row) | {"token": token.value}


@router.get("/{tokenId}")
async def get_token(
    caller: Annotated[Caller, needs_credential("credentials:read")], tokenId: TokenId
) -> dict[str, object]:
    """Return a token of the caller. Only in Caraway."""
    async with caller.services.database.read() as session:
        return _shown(await _find(session, caller.credential, tokenId))


@router.delete("/{tokenId}", status_code=204)
async def delete_token(
    caller: Annotated[Caller, needs_credential("credentials:write")], tokenId: TokenId
) -> None:
    """Revoke a token of the caller, at once. Only in Caraway."""
    async with caller.change() as change:
        row = await _find(change.session, caller.credential, tokenId)
        row.revoked_at = change.now
        change.on("token", row.id, row.name)


async def _find(session: AsyncSession, credential: Credential, token_id: int) -> Token:
    row = await tokens.get_token(session, _user_of(credential), token_id)
    if credential.org_id not in (None, row.org_id):
        raise refusals.not_found("token", token_id)
    return row


async def _check_member(session: AsyncSession, user_id: int, org_id: int) -> None:
    org = await session.get(Org, org_id)
    if org is None or await session.get(Member, (org_id, user_id)) is None:
        raise refusals.forbidden(
            "the organization is not one that the credential can reach", "org_forbidden"
        )
    if org.deleted_at is not None:
        raise refusals.forbidden("the organization is deleted", "org_deleted")


def _user_of(credential: Credential) -> int:
    if credential.user_id is None:
        raise refusals.forbidden("a machine has no personal tokens; use a credential of a user")
    return credential.user_id


def _shown(row: Token) -> dict[str, object]:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "hint": row.hint,
        "org_id": row.org_id,
        "scopes": row.scopes,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
    }
