"""Requests that the runtime of a project is applied, in the transaction of a change."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import outbox
from caraway_management.deployments import records
from caraway_management.domain import deployments
from caraway_management.store.tables import Project

APPLY = "apply_project"
REMOVE = "remove_project"
OBSERVE = "observe_deployment"


async def apply_project(session: AsyncSession, now: datetime, project_id: int) -> None:
    """Apply a project again, as after a change of its secrets, keys or limits."""
    await _enqueue(session, now, APPLY, project_id)


async def pause_project(session: AsyncSession, now: datetime, project: Project) -> None:
    """End the runtime of a project that has been paused. Its data stay."""
    await records.supersede(session, now, project.id, "the project is paused")
    project.endpoint = project.flight_endpoint = None
    await apply_project(session, now, project.id)


async def remove_project(session: AsyncSession, now: datetime, project: Project) -> None:
    """Remove the runtime and the data of a project that has been deleted."""
    await records.supersede(session, now, project.id, "the project is deleted")
    project.deployed_id = project.endpoint = project.flight_endpoint = None
    created = deployments.mark(project.created_at)
    await _enqueue(session, now, REMOVE, project.id, created=created)


async def observe_deployment(session: AsyncSession, now: datetime, deployment_id: int) -> None:
    """Look at the runtime of a deployment until it has come to an end."""
    await outbox.enqueue(
        session, now, OBSERVE, _subject(deployment_id), {"deployment_id": deployment_id}
    )


async def look_now(session: AsyncSession, now: datetime, deployment_ids: Iterable[int]) -> None:
    """Look at the runtimes of deployments now, if their ends are waited for."""
    for each in deployment_ids:
        await outbox.hasten(session, now, OBSERVE, _subject(each))


def _subject(deployment_id: int) -> str:
    return f"deployment:{deployment_id}"


async def _enqueue(
    session: AsyncSession, now: datetime, kind: str, project_id: int, **more: int
) -> None:
    payload = {"project_id": project_id, **more}
    await outbox.enqueue(session, now, kind, f"project:{project_id}", payload)
