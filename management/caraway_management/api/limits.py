"""The limits of an organization."""

from typing import Annotated

from fastapi import APIRouter

from caraway_management import accounts
from caraway_management.api.access import Caller, needs, needs_in_path

router = APIRouter(tags=["limits"])


@router.get("/v1/limits")
async def get_limits(caller: Annotated[Caller, needs("apps:read")]) -> dict[str, object]:
    """Return the limits of the organization that the credential acts for."""
    return await _limits_of(caller)


@router.get("/v1/orgs/{orgId}/limits")
async def get_organization_limits(
    caller: Annotated[Caller, needs_in_path("apps:read")],
) -> dict[str, object]:
    """Return the limits of an organization."""
    return await _limits_of(caller)


async def _limits_of(caller: Caller) -> dict[str, object]:
    async with caller.services.database.read() as session:
        return (await accounts.read_plan(session, caller.org.plan)).as_json()
