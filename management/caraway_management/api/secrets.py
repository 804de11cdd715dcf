"""Secrets of projects and of organizations. No route returns a value."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.api.access import (
    MOST_ID,
    Caller,
    Change,
    ProjectId,
    needs,
    needs_in_path,
)
from caraway_management.api.bodies import Body
from caraway_management.deployments import applying
from caraway_management.domain import names, secret_rules
from caraway_management.organizations import editing as organizations
from caraway_management.projects import finding
from caraway_management.secrets import linking, storing
from caraway_management.secrets.storing import Owner
from caraway_management.store.tables import Secret
from caraway_management.store.tables.sealed import OF_ORGANIZATION

router = APIRouter(tags=["secrets"])
of_projects = APIRouter(tags=["secrets"])

SecretName = Annotated[
    str,
    Field(
        description="Letters, digits and '_', not beginning with a digit. Kept in upper case.",
        json_schema_extra={"pattern": names.SECRET_PATTERN},
    ),
]
_Named = Annotated[str, Path(alias="name", description="The name of a secret, in any case.")]


class NewSecret(Body):
    """A secret, and its value."""

    name: SecretName
    value: str = Field(repr=False, min_length=1, description="At most 32 KiB of text.")


class ProjectSecret(NewSecret):
    """A secret of a project."""

    project_id: int = Field(ge=1, le=MOST_ID)


class LinkedSecret(Body):
    """A secret of the organization."""

    secret_name: SecretName = Field(alias="secretName")


@router.put("/v1/secrets")
async def put_secrets(
    body: ProjectSecret | Annotated[list[ProjectSecret], Field(min_length=1, max_length=100)],
    caller: Annotated[Caller, needs("secrets:write")],
) -> dict[str, object]:
    """Set secrets of projects: all of them, or none if one is refused.

    Takes one secret or a list, and answers in the same way. The form is ours.
    """
    secrets = body if isinstance(body, list) else [body]
    put: list[Secret] = []
    async with caller.change() as change:
        projects = {each.project_id for each in secrets}
        for project_id in sorted(projects):
            await finding.find_project(change.session, caller.org.id, project_id, locks=True)
        for each in secrets:
            owner = Owner(caller.org.id, each.project_id)
            put.append(await _put(caller, change, owner, each))
        if len(put) > 1:
            only = projects.pop() if len(projects) == 1 else None
            change.on("secrets", "", f"{len(put)} secrets", project_id=only)
    views = [_view(each) for each in put]
    return {"secrets": views} if isinstance(body, list) else views[0]


@of_projects.get("/{projectId}/secrets")
async def list_project_secrets(
    project_id: ProjectId, caller: Annotated[Caller, needs("secrets:read")]
) -> dict[str, object]:
    """List the secrets that the runtime of a project gets, with masked values.

    `source` (ours) is `organization` for linked ones; a secret of the project hides a linked one.
    """
    async with caller.services.database.read() as session:
        owner = await _owner(session, caller, project_id)
        return {"secrets": [_view(each) for each in await linking.in_force(session, owner)]}


@of_projects.post("/{projectId}/secrets")
async def set_project_secret(
    project_id: ProjectId, body: NewSecret, caller: Annotated[Caller, needs("secrets:write")]
) -> dict[str, object]:
    """Add a secret to a project, or replace its value. A running runtime takes it by itself."""
    async with caller.change() as change:
        owner = await _owner(change.session, caller, project_id, locks=True)
        return _view(await _put(caller, change, owner, body))


@of_projects.get("/{projectId}/secrets/{name}")
async def get_project_secret(
    project_id: ProjectId, name: _Named, caller: Annotated[Caller, needs("secrets:read")]
) -> dict[str, object]:
    """Return a secret that the runtime of a project gets, with a masked value."""
    async with caller.services.database.read() as session:
        owner = await _owner(session, caller, project_id)
        name = names.check_secret(name)
        secrets = [each for each in await linking.in_force(session, owner) if each.name == name]
        if not secrets:
            raise storing.missing(name)
        return _view(secrets[0])


@of_projects.delete("/{projectId}/secrets/{name}", status_code=204)
async def delete_project_secret(
    project_id: ProjectId, name: _Named, caller: Annotated[Caller, needs("secrets:write")]
) -> None:
    """Delete a secret of a project. A linked one of this name is in force again."""
    async with caller.change() as change:
        owner = await _owner(change.session, caller, project_id, locks=True)
        await _remove(change, await storing.get(change.session, owner, name))


@of_projects.get("/{projectId}/secret-links")
async def list_secret_links(
    project_id: ProjectId, caller: Annotated[Caller, needs("secrets:read")]
) -> dict[str, object]:
    """List the secrets of the organization that a project uses. Only in Caraway."""
    async with caller.services.database.read() as session:
        owner = await _owner(session, caller, project_id)
        secrets = await linking.linked_to(session, owner)
        return {"links": [{"secretName": each.name} for each in secrets]}


@of_projects.post("/{projectId}/secret-links", status_code=201)
async def link_secret(
    project_id: ProjectId, body: LinkedSecret, caller: Annotated[Caller, needs("secrets:write")]
) -> dict[str, object]:
    """Link a secret of the organization to a project. Only in Caraway."""
    async with caller.change() as change:
        owner = await _owner(change.session, caller, project_id, locks=True)
        secret = await linking.link(change.session, change.now, owner, body.secret_name)
        change.on("secret", secret.id, secret.name, project_id=project_id)
        await applying.apply_project(change.session, change.now, project_id)
    return {"secretName": secret.name}


@of_projects.delete("/{projectId}/secret-links/{name}", status_code=204)
async def unlink_secret(
    project_id: ProjectId, name: _Named, caller: Annotated[Caller, needs("secrets:write")]
) -> None:
    """Remove the link of a secret of the organization to a project. Only in Caraway."""
    async with caller.change() as change:
        owner = await _owner(change.session, caller, project_id, locks=True)
        await linking.unlink(change.session, owner, name)
        change.on("secret", "", names.check_secret(name), project_id=project_id)
        await applying.apply_project(change.session, change.now, project_id)


@router.get("/v1/orgs/{orgId}/secrets")
async def list_organization_secrets(
    caller: Annotated[Caller, needs_in_path("secrets:read")],
) -> dict[str, object]:
    """List the secrets of an organization itself, with masked values. The path is ours."""
    async with caller.services.database.read() as session:
        secrets = await storing.all_of(session, Owner(caller.org.id))
        return {"secrets": [_view(each) for each in secrets]}


@router.post("/v1/orgs/{orgId}/secrets")
async def set_organization_secret(
    body: NewSecret, caller: Annotated[Caller, needs_in_path("secrets:write")]
) -> dict[str, object]:
    """Add a secret to an organization, or replace its value. Projects link to it.

    Only in Caraway.
    """
    async with caller.change() as change:
        # Of two that add the same secret at once, the second one replaces it.
        await organizations.find(change.session, caller.org.id)
        return _view(await _put(caller, change, Owner(caller.org.id), body))


@router.get("/v1/orgs/{orgId}/secrets/{name}")
async def get_organization_secret(
    name: _Named, caller: Annotated[Caller, needs_in_path("secrets:read")]
) -> dict[str, object]:
    """Return a secret of an organization, with a masked value. Only in Caraway."""
    async with caller.services.database.read() as session:
        return _view(await storing.get(session, Owner(caller.org.id), name))


@router.delete("/v1/orgs/{orgId}/secrets/{name}", status_code=204)
async def delete_organization_secret(
    name: _Named, caller: Annotated[Caller, needs_in_path("secrets:write")]
) -> None:
    """Delete a secret of an organization, and its links to projects. Only in Caraway."""
    async with caller.change() as change:
        secret = await storing.get(change.session, Owner(caller.org.id), name)
        await _remove(change, secret)


async def _owner(
    session: AsyncSession, caller: Caller, project_id: int, *, locks: bool = False
) -> Owner:
    await finding.find_project(session, caller.org.id, project_id, locks=locks)
    return Owner(caller.org.id, project_id)


async def _put(caller: Caller, change: Change, owner: Owner, new_secret: NewSecret) -> Secret:
    session, sealer = change.session, caller.services.sealer
    secret = await storing.put(
        session, sealer, change.now, owner, new_secret.name, new_secret.value
    )
    await _note(change, secret)
    return secret


async def _remove(change: Change, secret: Secret) -> None:
    await _note(change, secret)
    await storing.remove(change.session, secret)


async def _note(change: Change, secret: Secret) -> None:
    change.on("secret", secret.id, secret.name, project_id=secret.project_id or None)
    for project_id in await linking.projects_of(change.session, secret):
        await applying.apply_project(change.session, change.now, project_id)


def _view(secret: Secret) -> dict[str, object]:
    return {
        "id": secret.id,
        "name": secret.name,
        "value": secret_rules.MASK,
        "source": "organization" if secret.project_id == OF_ORGANIZATION else "project",
        "created_at": secret.created_at.isoformat(),
        "updated_at": secret.updated_at.isoformat(),
    }
