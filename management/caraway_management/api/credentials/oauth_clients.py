"""`/v1/oauth-clients`: the machines of an organization. Only in Caraway."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import select

from caraway_management.api import revisions
from caraway_management.api.access import Caller, needs
from caraway_management.api.paging import Paged
from caraway_management.credentials import clients, values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import grants, names, scopes
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import OAuthClient

router = APIRouter(prefix="/v1/oauth-clients", tags=["oauth clients"])
ClientId = Annotated[str, Path(max_length=100)]
_LONGEST_DESCRIPTION = 1_000


class ClientBody(BaseModel):
    """A new client."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str = Field("", max_length=_LONGEST_DESCRIPTION)
    scopes: list[str] = Field(max_length=50)
    expires_at: AwareDatetime | None = Field(None, description="Null: it does not expire.")


class ClientChanges(BaseModel):
    """Changes of a client: the fields that are there."""

    model_config = ConfigDict(extra="forbid")

    name: str = ""
    description: str = Field("", max_length=_LONGEST_DESCRIPTION)
    scopes: list[str] = Field([], max_length=50)
    expires_at: AwareDatetime | None = None


@router.get("")
async def list_oauth_clients(
    caller: Annotated[Caller, needs("credentials:read")], page: Paged
) -> dict[str, object]:
    """List the OAuth clients of the organization, by name. Only in Caraway."""
    query = (
        select(OAuthClient)
        .where(OAuthClient.org_id == caller.org.id, OAuthClient.deleted_at.is_(None))
        .order_by(OAuthClient.name, OAuthClient.client_id)
        .limit(page.limit)
        .offset(page.offset)
    )
    async with caller.services.database.read() as session:
        rows = list(await session.scalars(query))
    return {"oauth_clients": [_shown(row) for row in rows]}


@router.post("", status_code=201)
async def create_oauth_client(
    body: ClientBody, caller: Annotated[Caller, needs("credentials:write")], response: Response
) -> dict[str, object]:
    """Make an OAuth client. Only in Caraway. `client_secret` is shown only here.

    It acts for this organization, with no scope that the caller lacks.
    """
    names.check_text(body.name, "name")
    _check_description(body.description)
    given = grants.check_scopes(body.scopes, _held(caller))
    latest = caller.credential.expires_at
    expires_at = grants.check_expiry(body.expires_at, caller.services.now(), latest)
    async with caller.change() as change:
        row, secret = await clients.add_client(
            change.session,
            change.now,
            caller.org.id,
            body.name,
            body.description,
            given,
            expires_at,
            caller.role,
            caller.credential.user_id,
        )
        change.on("oauth_client", row.client_id, row.name)
    response.headers["cache-control"] = "no-store"
    revisions.set_etag(response, row.revision)
    return _shown(row) | {"client_secret": secret}


@router.get("/{clientId}")
async def get_oauth_client(
    caller: Annotated[Caller, needs("credentials:read")], clientId: ClientId, response: Response
) -> dict[str, object]:
    """Return an OAuth client of the organization. Only in Caraway."""
    async with caller.services.database.read() as session:
        row = await clients.get_client(session, caller.org.id, clientId)
    revisions.set_etag(response, row.revision)
    return _shown(row)


@router.patch("/{clientId}", dependencies=revisions.TAKES_IF_MATCH)
async def update_oauth_client(
    body: ClientChanges,
    caller: Annotated[Caller, needs("credentials:write")],
    clientId: ClientId,
    response: Response,
) -> dict[str, object]:
    """Change an OAuth client.

    Only in Caraway. Scopes that are taken away are gone from its tokens at once.
    """
    fields = body.model_fields_set
    async with caller.change() as change:
        row = await clients.get_client(change.session, caller.org.id, clientId)
        revisions.check_if_match(caller.request, row.revision)
        if "name" in fields:
            row.name = names.check_text(body.name, "name")
        if "description" in fields:
            row.description = _check_description(body.description)
        if "scopes" in fields:
            row.scopes = grants.check_scopes(body.scopes, _held(caller))
        if "expires_at" in fields:
            latest = caller.credential.expires_at
            row.expires_at = grants.check_expiry(body.expires_at, change.now, latest)
        row.revision += 1
        change.on("oauth_client", row.client_id, row.name)
    revisions.set_etag(response, row.revision)
    return _shown(row)


@router.delete("/{clientId}", status_code=204, dependencies=revisions.TAKES_IF_MATCH)
async def delete_oauth_client(
    caller: Annotated[Caller, needs("credentials:write")], clientId: ClientId
) -> None:
    """Delete an OAuth client. Only in Caraway. Its tokens are refused at once."""
    async with caller.change() as change:
        row = await clients.get_client(change.session, caller.org.id, clientId)
        revisions.check_if_match(caller.request, row.revision)
        row.deleted_at = change.now
        row.secret_hash = None
        change.on("oauth_client", row.client_id, row.name)


@router.post("/{clientId}/secret")
async def regenerate_oauth_client_secret(
    caller: Annotated[Caller, needs("credentials:write")], clientId: ClientId, response: Response
) -> dict[str, object]:
    """Give an OAuth client a new secret. Only in Caraway. `client_secret` is shown only here.

    The old secret gets no more tokens. Tokens that it got are valid until they expire.
    """
    secret = values.make(Prefix.CLIENT_SECRET)
    async with caller.change() as change:
        row = await clients.get_client(change.session, caller.org.id, clientId)
        # The secret gives what the client may do, so the caller may do that, too.
        grants.check_scopes(row.scopes, _held(caller))
        caller.within.require_role(Role(row.role))
        row.secret_hash = values.digest(secret)
        row.revision += 1
        change.on("oauth_client", row.client_id, row.name)
    response.headers["cache-control"] = "no-store"
    revisions.set_etag(response, row.revision)
    return _shown(row) | {"client_secret": secret}


def _held(caller: Caller) -> frozenset[str]:
    """Return the scopes that the caller may use here: those of both the credential and the role."""
    return caller.credential.scopes & scopes.allowed(caller.role)


def _check_description(text: str) -> str:
    return names.check_text(text, "description", _LONGEST_DESCRIPTION) if text else text


def _shown(row: OAuthClient) -> dict[str, object]:
    return {
        "client_id": row.client_id,
        "name": row.name,
        "description": row.description,
        "scopes": row.scopes,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
    }
