"""The plans of the installation. Everybody reads them; administrators write them.

Only in Caraway.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Response

from caraway_management.api.access import Caller, needs_credential
from caraway_management.api.bodies import Body
from caraway_management.api.revisions import TAKES_IF_MATCH, check_if_match, set_etag
from caraway_management.limiting import spreading
from caraway_management.organizations import plan_rows
from caraway_management.store.tables import PlanRow

router = APIRouter(tags=["limits"])


class WrittenPlan(Body):
    """Limits of a plan, in the form of `GET /v1/limits`. A new plan has all of them."""

    limits: dict[str, Any]


def view(plan: PlanRow) -> dict[str, object]:
    """Return a plan as JSON."""
    return {
        "name": plan.name,
        "limits": plan.limits,
        "revision": plan.revision,
        "updated_at": plan.updated_at.isoformat(),
    }


@router.get("/v1/plans")
async def list_plans(caller: Annotated[Caller, needs_credential()]) -> dict[str, object]:
    """List the plans. Only in Caraway."""
    async with caller.services.database.read() as session:
        return {"plans": [view(each) for each in await plan_rows.list_plans(session)]}


@router.get("/v1/plans/{planName}")
async def get_plan(
    planName: str, caller: Annotated[Caller, needs_credential()], response: Response
) -> dict[str, object]:
    """Return a plan. Only in Caraway."""
    async with caller.services.database.read() as session:
        plan = await plan_rows.find(session, planName)
    set_etag(response, plan.revision)
    return view(plan)


@router.put("/v1/plans/{planName}", dependencies=TAKES_IF_MATCH)
async def write_plan(
    planName: str,
    body: WrittenPlan,
    caller: Annotated[Caller, needs_credential("orgs:write")],
    response: Response,
) -> dict[str, object]:
    """Change limits of a plan, or make one. For administrators of the installation.

    Only in Caraway.

    The runtimes of all projects that it applies to go on with the new limits within seconds.
    """
    caller.require_administrator()
    async with caller.change() as change:
        check_if_match(caller.request, await plan_rows.lock(change.session, planName))
        plan = await plan_rows.write(change.session, change.now, planName, body.limits)
        await spreading.plan_changed(change.session, change.now, plan.name)
        change.on("plan", plan.name, plan.name)
    set_etag(response, plan.revision)
    return view(plan)


@router.delete("/v1/plans/{planName}", status_code=204, dependencies=TAKES_IF_MATCH)
async def delete_plan(
    planName: str, caller: Annotated[Caller, needs_credential("orgs:write")]
) -> None:
    """Delete a plan that no organization has. For administrators of the installation.

    Only in Caraway.
    """
    caller.require_administrator()
    async with caller.change() as change:
        check_if_match(caller.request, await plan_rows.lock(change.session, planName))
        await plan_rows.delete(change.session, planName)
        change.on("plan", planName, planName)
