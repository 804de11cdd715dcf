"""The processes or pods of a project's runtime, and their logs."""

from collections.abc import Container
from typing import Annotated

from fastapi import APIRouter, Path, Query

from caraway_management.api.access import Caller, ProjectId, needs
from caraway_management.domain import plans, refusals
from caraway_management.domain.deployments import mark
from caraway_management.domain.refusals import RefusedError
from caraway_management.projects import finding
from caraway_management.store.tables import Project

router = APIRouter(tags=["projects"])
_LONGEST_TAIL = 100_000


@router.get("/{projectId}/instances")
async def list_instances(
    project_id: ProjectId, caller: Annotated[Caller, needs("deployments:read")]
) -> dict[str, object]:
    """List the instances of a project that is deployed."""
    project = await _find(caller, project_id)
    found = await caller.services.deployer.instances(project.id, mark(project.created_at))
    return {
        "instances": [
            {
                "name": each.name,
                "status": each.status,
                "started_at": each.started_at.isoformat() if each.started_at else None,
            }
            for each in found[: plans.MOST_INSTANCES]
        ]
    }


@router.get("/{projectId}/instances/{instanceName}/logs")
async def get_instance_logs(
    project_id: ProjectId,
    instance: Annotated[str, Path(alias="instanceName", max_length=253)],
    caller: Annotated[Caller, needs("deployments:read")],
    tail: Annotated[int, Query(ge=1, le=_LONGEST_TAIL, description="The last lines.")] = 100,
) -> dict[str, object]:
    """Return the last lines of an instance.

    A plan shows a number of lines: 403 `plan_limit` has it as `max_tail`.
    """
    check_tail(caller.org.plan, tail)
    project = await _find(caller, project_id)
    deployer, created = caller.services.deployer, mark(project.created_at)
    found = {each.name: each for each in await deployer.instances(project.id, created)}
    check_known(instance, found)
    lines = await deployer.logs(project.id, instance, tail, created)
    if lines is None:
        raise offline(instance)
    return {"lines": list(lines)[-tail:]}


async def _find(caller: Caller, project_id: int) -> Project:
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
    check_running(
        is_paused=project.paused_at is not None, is_deployed=project.deployed_id is not None
    )
    return project


def check_running(*, is_paused: bool, is_deployed: bool) -> None:
    """Check that a project has a runtime.

    Raises:
        RefusedError: it is paused, or has never been deployed.
    """
    if is_paused:
        raise refusals.conflict("the project is paused; resume it first", "project_paused")
    if not is_deployed:
        raise refusals.conflict(
            "the project is not deployed; deploy it first", "project_not_deployed"
        )


def check_tail(plan: str, tail: int) -> None:
    """Check that a plan shows this many lines.

    Raises:
        RefusedError: it shows fewer.
    """
    most = plans.max_tail(plan)
    if tail > most:
        raise RefusedError(
            403, f"the plan '{plan}' shows the last {most} lines", "plan_limit",
            extra={"max_tail": most},
        )  # fmt: skip


def check_known(name: str, known: Container[str]) -> None:
    """Check that a project has an instance.

    Raises:
        RefusedError: it has none of this name.
    """
    if name not in known:
        raise refusals.RefusedError(404, f"instance '{name}' not found", "instance_not_found")


def offline(name: str) -> RefusedError:
    """Return the refusal of an instance that has ended."""
    return refusals.conflict(f"instance '{name}' is offline", "instance_offline")
