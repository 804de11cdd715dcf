"""The API keys of a project's runtime."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from caraway_management.api.access import Caller, ProjectId, needs
from caraway_management.api.bodies import Body
from caraway_management.deployments import applying
from caraway_management.domain.scopes import Role
from caraway_management.projects import finding
from caraway_management.secrets import api_keys

router = APIRouter(tags=["API keys"])


class Regeneration(Body):
    """Which key gets a new value."""

    key_number: int = Field(default=1, ge=0, le=2, description="1 or 2; 0 is both.")


@router.get("/{projectId}/api-keys")
async def get_api_keys(
    project_id: ProjectId, caller: Annotated[Caller, needs("apps:read")]
) -> dict[str, object]:
    """Return both API keys of a project. Viewers may not read them (ours)."""
    _check_role(caller)
    sealer = caller.services.sealer
    async with caller.services.database.read() as session:
        await finding.find_project(session, caller.org.id, project_id)
        keys = await api_keys.read(session, sealer, project_id)
    if len(keys) < len(api_keys.NUMBERS):
        async with caller.services.database.change() as session:
            await finding.find_project(session, caller.org.id, project_id, locks=True)
            keys = await api_keys.make(session, sealer, caller.services.now(), project_id)
    return _view(keys)


@router.post("/{projectId}/api-keys")
async def regenerate_api_keys(
    project_id: ProjectId,
    caller: Annotated[Caller, needs("apps:write")],
    body: Regeneration | None = None,
) -> dict[str, object]:
    """Give one API key of a project a new value, or both. The other one stays valid.

    The runtime takes the new one within seconds, without a restart. `regenerated_key` is the
    number of the key.
    """
    number = (body or Regeneration()).key_number
    async with caller.change() as change:
        project = await finding.find_project(change.session, caller.org.id, project_id, locks=True)
        change.on("api_key", number, project.name, project_id=project_id)
        keys = await api_keys.regenerate(
            change.session, caller.services.sealer, change.now, project_id, number
        )
        await applying.apply_project(change.session, change.now, project_id)
    return {**_view(keys), "regenerated_key": number}


def _check_role(caller: Caller) -> None:
    assert caller.access is not None
    caller.access.require_role(Role.MEMBER)


def _view(keys: dict[int, str]) -> dict[str, object]:
    return {"api_key": keys[1], "api_key_2": keys[2]}
