"""Monitors of projects and of clusters."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.api import revisions
from caraway_management.api.access import Caller, Change, ProjectId, needs
from caraway_management.api.bodies import Body
from caraway_management.api.notice_bodies import Targets
from caraway_management.api.paging import Paged
from caraway_management.api.revisions import TAKES_IF_MATCH
from caraway_management.domain import refusals
from caraway_management.domain.monitors import LONGEST_SUSTAIN_S, Op, Severity, Window
from caraway_management.monitoring import resources
from caraway_management.monitoring.resources import Place
from caraway_management.monitoring.targets import TargetKeeper
from caraway_management.projects import finding
from caraway_management.store.tables import Monitor, Org

router = APIRouter(tags=["monitors"])
of_clusters = APIRouter(prefix="/v1/clusters", tags=["monitors"])

MonitorId = Annotated[str, Path(alias="monitorId", description="The id of a monitor.")]
ClusterName = Annotated[str, Path(alias="clusterName", description="The name of a cluster.")]
Reader = Annotated[Caller, needs("monitors:read")]
Writer = Annotated[Caller, needs("monitors:write")]
_Name = Annotated[str, Field(max_length=100)]
_Dataset = Annotated[str, Field(max_length=255)]


class GivenSpec(Body):
    """A condition on the value of a template."""

    op: Op = "GT"
    threshold: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    window: Window = "5m"
    sustainSecs: Annotated[int, Field(ge=0, le=LONGEST_SUSTAIN_S)] = 300
    severity: Severity = "warn"
    includeDetails: bool = True
    dataset: _Dataset | None = None
    datasets: Annotated[list[_Dataset], Field(max_length=20)] | None = None


class NewMonitor(Body):
    """A monitor to add."""

    name: _Name
    template: Annotated[str, Field(max_length=64)]
    spec: GivenSpec
    targets: Targets
    enabled: bool = True


class ChangedMonitor(Body):
    """Changes of a monitor. `targets` replaces all targets."""

    name: _Name = ""
    template: Annotated[str, Field(max_length=64)] = ""
    spec: GivenSpec = Field(default_factory=GivenSpec)
    targets: Targets = Field(default_factory=Targets)
    enabled: bool = True
    revision: Annotated[
        int | None,
        Field(description="The revision that was read; 409 `monitor_changed` if it is stale."),
    ] = None


@router.get("/{projectId}/monitors")
async def list_monitors(caller: Reader, project_id: ProjectId, page: Paged) -> dict[str, object]:
    """List the monitors of a project. The shape of their fields is ours."""
    async with caller.services.database.read() as session:
        place = await _project(session, caller, project_id)
        monitors = await resources.list_monitors(session, place, page.limit, page.offset)
    return {"monitors": [resources.view(monitor) for monitor in monitors]}


@router.post("/{projectId}/monitors", status_code=201)
async def create_monitor(
    caller: Writer, project_id: ProjectId, body: NewMonitor, response: Response
) -> dict[str, object]:
    """Add a monitor. Its condition is judged every 60 s."""
    async with caller.change() as change:
        place = await _project(change.session, caller, project_id, locks=True)
        return await _create(caller, change, place, body, response)


@router.get("/{projectId}/monitors/{monitorId}")
async def get_monitor(
    caller: Reader, project_id: ProjectId, monitor_id: MonitorId, response: Response
) -> dict[str, object]:
    """Return a monitor."""
    async with caller.services.database.read() as session:
        place = await _project(session, caller, project_id)
        return _shown(response, await resources.find_monitor(session, place, monitor_id))


@router.patch("/{projectId}/monitors/{monitorId}", dependencies=TAKES_IF_MATCH)
async def update_monitor(
    caller: Writer,
    project_id: ProjectId,
    monitor_id: MonitorId,
    body: ChangedMonitor,
    response: Response,
) -> dict[str, object]:
    """Change a monitor. 409 `monitor_changed` if it was changed since `revision` was read."""
    async with caller.change() as change:
        place = await _project(change.session, caller, project_id, locks=True)
        return await _update(caller, change, place, monitor_id, body, response)


@router.delete("/{projectId}/monitors/{monitorId}", dependencies=TAKES_IF_MATCH)
async def delete_monitor(
    caller: Writer, project_id: ProjectId, monitor_id: MonitorId
) -> dict[str, object]:
    """Delete a monitor."""
    async with caller.change() as change:
        place = await _project(change.session, caller, project_id, locks=True)
        return await _delete(caller, change, place, monitor_id)


@of_clusters.get("/{clusterName}/monitors")
async def list_cluster_monitors(
    caller: Reader, cluster_name: ClusterName, page: Paged
) -> dict[str, object]:
    """List the monitors of the organization on a cluster, which look at its own projects there."""
    place = _cluster(caller, cluster_name)
    async with caller.services.database.read() as session:
        monitors = await resources.list_monitors(session, place, page.limit, page.offset)
    return {"monitors": [resources.view(monitor) for monitor in monitors]}


@of_clusters.post("/{clusterName}/monitors", status_code=201)
async def create_cluster_monitor(
    caller: Writer, cluster_name: ClusterName, body: NewMonitor, response: Response
) -> dict[str, object]:
    """Add a monitor of the organization on a cluster."""
    place = _cluster(caller, cluster_name)
    async with caller.change() as change:
        # Monitors of a cluster are counted per organization.
        await change.session.get_one(Org, place.org_id, with_for_update=True)
        return await _create(caller, change, place, body, response)


@of_clusters.get("/{clusterName}/monitors/{monitorId}")
async def get_cluster_monitor(
    caller: Reader, cluster_name: ClusterName, monitor_id: MonitorId, response: Response
) -> dict[str, object]:
    """Return a monitor on a cluster."""
    place = _cluster(caller, cluster_name)
    async with caller.services.database.read() as session:
        return _shown(response, await resources.find_monitor(session, place, monitor_id))


@of_clusters.patch("/{clusterName}/monitors/{monitorId}", dependencies=TAKES_IF_MATCH)
async def update_cluster_monitor(
    caller: Writer,
    cluster_name: ClusterName,
    monitor_id: MonitorId,
    body: ChangedMonitor,
    response: Response,
) -> dict[str, object]:
    """Change a monitor on a cluster."""
    place = _cluster(caller, cluster_name)
    async with caller.change() as change:
        return await _update(caller, change, place, monitor_id, body, response)


@of_clusters.delete("/{clusterName}/monitors/{monitorId}", dependencies=TAKES_IF_MATCH)
async def delete_cluster_monitor(
    caller: Writer, cluster_name: ClusterName, monitor_id: MonitorId
) -> dict[str, object]:
    """Delete a monitor on a cluster."""
    place = _cluster(caller, cluster_name)
    async with caller.change() as change:
        return await _delete(caller, change, place, monitor_id)


def keeper(caller: Caller, session: AsyncSession) -> TargetKeeper:
    """Return what seals the targets of a request."""
    services = caller.services
    return TargetKeeper(session, services.sealer, services.notices.channels)


async def _project(
    session: AsyncSession, caller: Caller, project_id: int, *, locks: bool = False
) -> Place:
    project = await finding.find_project(session, caller.org.id, project_id, locks=locks)
    return Place(caller.org.id, project.id, is_paused=project.paused_at is not None)


def _cluster(caller: Caller, name: str) -> Place:
    cluster = caller.services.platform.find_cluster(name, caller.org.name)
    if cluster is None:
        raise refusals.not_found("cluster", name[:63])
    return Place(caller.org.id, cluster_name=cluster.name)


async def _create(
    caller: Caller, change: Change, place: Place, body: NewMonitor, response: Response
) -> dict[str, object]:
    monitor, secret = await resources.create_monitor(
        change.session,
        change.now,
        place,
        body.model_dump(exclude_unset=True),
        keeper(caller, change.session),
    )
    _name(change, place, monitor.id, monitor.name)
    return _shown(response, monitor, secret)


async def _update(
    caller: Caller,
    change: Change,
    place: Place,
    monitor_id: str,
    body: ChangedMonitor,
    response: Response,
) -> dict[str, object]:
    monitor = await resources.find_monitor(change.session, place, monitor_id, locks=True)
    _name(change, place, monitor.id, monitor.name)
    resources.check_revision("monitor", monitor.revision, body.revision)
    revisions.check_if_match(caller.request, monitor.revision)
    given: Mapping[str, object] = body.model_dump(exclude_unset=True)
    secret = await resources.update_monitor(
        change.session, change.now, place, monitor, given, keeper(caller, change.session)
    )
    return _shown(response, monitor, secret)


async def _delete(
    caller: Caller, change: Change, place: Place, monitor_id: str
) -> dict[str, object]:
    monitor = await resources.find_monitor(change.session, place, monitor_id, locks=True)
    _name(change, place, monitor.id, monitor.name)
    revisions.check_if_match(caller.request, monitor.revision)
    await change.session.delete(monitor)
    return {"ok": True}


def _shown(response: Response, monitor: Monitor, secret: str | None = None) -> dict[str, object]:
    revisions.set_etag(response, monitor.revision)
    return resources.view(monitor, secret)


def _name(change: Change, place: Place, id_: str, name: str) -> None:
    change.on("monitor", id_, name, project_id=place.project_id or None)
