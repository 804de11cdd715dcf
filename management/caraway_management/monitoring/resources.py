"""Makes, changes and removes monitors of projects and of clusters."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import monitors, names, refusals
from caraway_management.domain.alerts import Alert
from caraway_management.domain.monitoring import State
from caraway_management.domain.monitors import Of
from caraway_management.monitoring.targets import TargetKeeper, show
from caraway_management.store.tables import Monitor, Project


@dataclass(frozen=True, slots=True)
class Place:
    """The subjects of monitors: a project, or a cluster for an organization."""

    org_id: int
    project_id: int = 0
    cluster_name: str = ""
    is_paused: bool = False

    @property
    def of(self) -> Of:
        """Which templates can be used."""
        return Of.CLUSTER if self.cluster_name else Of.PROJECT

    @property
    def query(self) -> Select[Monitor]:
        """Return the query of its monitors."""
        return select(Monitor).where(
            Monitor.org_id == self.org_id,
            Monitor.project_id == self.project_id,
            Monitor.cluster_name == self.cluster_name,
        )


async def list_monitors(
    session: AsyncSession, place: Place, limit: int, offset: int
) -> Sequence[Monitor]:
    """Return a page of monitors, the oldest first."""
    query = place.query.order_by(Monitor.created_at, Monitor.id).limit(limit).offset(offset)
    return (await session.scalars(query)).all()


async def find_monitor(
    session: AsyncSession, place: Place, id_: str, *, locks: bool = False
) -> Monitor:
    """Return a monitor.

    Raises:
        RefusedError: it does not exist, or is on something else.
    """
    query = place.query.where(Monitor.id == id_)
    monitor = await session.scalar(query.with_for_update() if locks else query)
    if monitor is None:
        raise refusals.not_found("monitor", id_[:40])
    return monitor


async def create_monitor(
    session: AsyncSession,
    now: datetime,
    place: Place,
    given: Mapping[str, Any],
    keeper: TargetKeeper,
) -> tuple[Monitor, str | None]:
    """Add a monitor; return it, and the signing secret of its webhook if one was made.

    The caller has locked what the monitor is on, so that the number of monitors cannot change.

    Raises:
        RefusedError: it is not valid, its name is in use, or there are too many.
    """
    if place.is_paused:
        raise refusals.conflict("the project is paused; resume it first", "project_paused")
    name = monitors.check_name(given["name"])
    template = monitors.find_template(given["template"], place.of)
    spec = monitors.read_spec(template, given["template"], given["spec"])
    await _check_name(session, place, name)
    count = await session.scalar(select(func.count()).select_from(place.query.subquery()))
    if (count or 0) >= monitors.MOST_OF_PROJECT:
        raise refusals.conflict(
            f"a {place.of} has at most {monitors.MOST_OF_PROJECT} monitors, disabled ones "
            "included; delete one",
            "monitor_limit",
        )
    id_ = str(uuid.uuid4())
    kept = await keeper.keep(id_, given["targets"])
    monitor = Monitor(
        id=id_,
        org_id=place.org_id,
        project_id=place.project_id,
        cluster_name=place.cluster_name,
        name=name,
        name_key=names.key(name),
        template=given["template"],
        spec=spec.as_json(),
        targets=kept.stored,
        is_enabled=given.get("enabled", True),
        state=State.OK,
        created_at=now,
        updated_at=now,
    )
    session.add(monitor)
    await session.flush()
    return monitor, kept.signing_secret


async def add_alerts(
    session: AsyncSession,
    now: datetime,
    project: Project,
    recipient_id: int | None,
    keeper: TargetKeeper,
    chosen: Sequence[Alert],
) -> None:
    """Add alerts to a new project, unless it has monitors already.

    They are monitors like others. Without a mail server, or without a user, they have no targets
    yet.
    """
    place = Place(project.org_id, project.id)
    if await session.scalar(place.query.limit(1)) is not None:
        return
    targets: dict[str, object] = {}
    if keeper.channels.has_email and recipient_id is not None:
        targets["email"] = {"recipientUserIds": [recipient_id]}
    for alert in chosen:
        session.add(
            Monitor(
                id=str(uuid.uuid4()), org_id=project.org_id, project_id=project.id,
                name=alert.name, name_key=names.key(alert.name), template=alert.template,
                spec=alert.spec.as_json(), targets=targets, is_enabled=True, state=State.OK,
                created_at=now, updated_at=now,
            )
        )  # fmt: skip
    await session.flush()


async def update_monitor(
    session: AsyncSession,
    now: datetime,
    place: Place,
    monitor: Monitor,
    given: Mapping[str, Any],
    keeper: TargetKeeper,
) -> str | None:
    """Change what a request gives of a monitor; return the signing secret if one was made.

    A changed condition is judged from the beginning.

    Raises:
        RefusedError: it is not valid, or its name is in use.
    """
    if "name" in given:
        name = monitors.check_name(given["name"])
        if names.key(name) != monitor.name_key:
            await _check_name(session, place, name)
        monitor.name, monitor.name_key = name, names.key(name)
    name = given.get("template", monitor.template)
    template = monitors.find_template(name, place.of)
    is_same = name == monitor.template
    base = monitors.stored_spec(monitor.spec) if is_same else None
    spec = monitors.read_spec(template, name, given.get("spec", {}), base).as_json()
    is_enabled = given.get("enabled", monitor.is_enabled)
    if not is_same or spec != monitor.spec or is_enabled != monitor.is_enabled:
        monitor.state, monitor.since, monitor.calm_since = State.OK, now, None
        monitor.evaluation_unavailable_reason = None
    monitor.template, monitor.spec, monitor.is_enabled = name, spec, is_enabled
    made: str | None = None
    if "targets" in given:
        kept = await keeper.keep(monitor.id, given["targets"], monitor.targets)
        monitor.targets, made = kept.stored, kept.signing_secret
    monitor.revision += 1
    monitor.updated_at = now
    await session.flush()
    return made


def check_revision(resource: str, present: int, given: int | None) -> None:
    """Check that a change was made from the present revision.

    Raises:
        RefusedError: it was made from an earlier one.
    """
    if given is not None and given != present:
        raise refusals.conflict(
            f"the {resource} was changed since it was read; read it again and repeat the change",
            f"{resource}_changed",
        )


def view(monitor: Monitor, signing_secret: str | None = None) -> dict[str, object]:
    """Return a monitor as replies show it."""
    return {
        "id": monitor.id,
        "name": monitor.name,
        "template": monitor.template,
        "spec": monitor.spec,
        "targets": show(monitor.targets, signing_secret),
        "enabled": monitor.is_enabled,
        "state": monitor.state,
        "since": text_of(monitor.since),
        "last_fired_at": text_of(monitor.last_fired_at),
        "last_resolved_at": text_of(monitor.last_resolved_at),
        "evaluation_unavailable_reason": monitor.evaluation_unavailable_reason,
        "revision": monitor.revision,
        "created_at": text_of(monitor.created_at),
        "updated_at": text_of(monitor.updated_at),
    }


async def _check_name(session: AsyncSession, place: Place, name: str) -> None:
    if await session.scalar(place.query.where(Monitor.name_key == names.key(name))):
        raise refusals.conflict(f"Monitor '{name}' already exists", "monitor_name_taken")


def text_of(moment: datetime | None) -> str | None:
    """Return a moment as replies show it."""
    return moment.isoformat() if moment else None
