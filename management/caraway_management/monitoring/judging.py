"""Judges all monitors every minute, in one of the instances."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import CarawayError
from caraway_management.domain import monitoring, monitors
from caraway_management.domain.monitoring import Event, Measured, Sample, Standing, State, Verdict
from caraway_management.domain.monitors import WINDOWS_S, Spec
from caraway_management.domain.samples import with_limits
from caraway_management.monitoring import announcing, leases
from caraway_management.services import Services
from caraway_management.store.tables import MetricSample, Monitor, Org, Project, Reaction

logger = logging.getLogger(__name__)
LEASE = "judge monitors"
_LEASE_S = 2 * monitoring.EVERY_S
_PAUSED = "the project is paused"


@dataclass(frozen=True, slots=True)
class Judged:
    """A monitor as it was when it was judged, and the verdict."""

    monitor: Monitor
    spec: Spec
    verdict: Verdict
    subject: str

    @property
    def is_changed(self) -> bool:
        """True if the verdict changes the stored state."""
        monitor, standing = self.monitor, self.verdict.standing
        return (
            standing_of(monitor) != standing
            or monitor.evaluation_unavailable_reason != self.verdict.measured.reason
        )


class Judge:
    """Judges the monitors, if this instance has the lease for it."""

    def __init__(self, services: Services, owner: str, every_s: float = monitoring.EVERY_S) -> None:
        self._services = services
        self._owner = owner
        self._every_s = every_s

    async def run(self) -> None:
        """Judge until cancelled."""
        while True:
            try:
                await self.run_once()
            except CarawayError as exc:
                logger.warning("monitors were not judged", extra={"reason": str(exc)})
            await asyncio.sleep(self._every_s)

    async def run_once(self) -> int:
        """Judge every monitor once; return how many, or 0 if another instance does it."""
        services, now = self._services, self._services.now()
        if not await leases.take(services.database, now, LEASE, self._owner, _LEASE_S):
            return 0
        async with services.database.read() as session:
            judged = await _judge_all(session, now)
        if changed := [each for each in judged if each.is_changed]:
            async with services.database.change() as session:
                if await leases.renew(session, now, LEASE, self._owner, _LEASE_S):
                    await _store(session, now, changed)
        return len(judged)


def standing_of(owner: Monitor | Reaction) -> Standing:
    """Return the state of a monitor, or of a reaction to rows."""
    return Standing(State(owner.state), owner.since, owner.calm_since)


async def _judge_all(session: AsyncSession, now: datetime) -> list[Judged]:
    """Judge all monitors. The number of statements does not depend on how many there are."""
    rows = await session.execute(
        select(Monitor, Project)
        .outerjoin(Project, Project.id == Monitor.project_id)
        .join(Org, Org.id == Monitor.org_id)
        .where(Monitor.is_enabled, Org.deleted_at.is_(None), Project.deleted_at.is_(None))
        .order_by(Monitor.id)
    )
    found = [(monitor, monitors.stored_spec(monitor.spec), project) for monitor, project in rows]
    members, configs = await _projects_of_clusters(session, [monitor for monitor, *_ in found])
    configs |= {project.id: project.config for *_, project in found if project is not None}
    windows: dict[int, int] = defaultdict(int)
    for monitor, spec, _ in found:
        for project_id in (
            members[_cluster(monitor)] if monitor.cluster_name else [monitor.project_id]
        ):
            windows[project_id] = max(windows[project_id], WINDOWS_S[spec.window])
    samples = await _read_samples(session, now, windows, configs)
    judged = []
    for monitor, spec, project in found:
        if monitor.cluster_name:
            subject = f"cluster '{monitor.cluster_name}'"
            inside = {id_: samples[id_] for id_ in members[_cluster(monitor)]}
            measured = monitoring.measure_cluster(monitor.template, spec, inside, now)
        elif project is None or project.paused_at is not None:
            subject, measured = "", Measured(None, _PAUSED)
        else:
            subject = f"project '{project.name}'"
            measured = monitoring.measure(monitor.template, spec, samples[project.id], now)
        verdict = monitoring.judge(standing_of(monitor), spec, measured, now)
        judged.append(Judged(monitor, spec, verdict, subject))
    return judged


def _cluster(monitor: Monitor) -> tuple[int, str]:
    return monitor.org_id, monitor.cluster_name


async def _projects_of_clusters(
    session: AsyncSession, found: Sequence[Monitor]
) -> tuple[Mapping[tuple[int, str], Sequence[int]], dict[int, Mapping[str, object]]]:
    """Return the running projects of each organization on each cluster, and their configs."""
    members: dict[tuple[int, str], list[int]] = defaultdict(list)
    configs: dict[int, Mapping[str, object]] = {}
    clusters = sorted({monitor.cluster_name for monitor in found if monitor.cluster_name})
    if clusters:
        for id_, org_id, name, config in await session.execute(
            select(Project.id, Project.org_id, Project.cluster_name, Project.config)
            .where(Project.cluster_name.in_(clusters), Project.deleted_at.is_(None))
            .where(Project.paused_at.is_(None), Project.endpoint.is_not(None))
            .order_by(Project.id)
        ):
            members[org_id, name or ""].append(id_)
            configs[id_] = config
    return members, configs


async def _read_samples(
    session: AsyncSession,
    now: datetime,
    windows: Mapping[int, int],
    configs: Mapping[int, Mapping[str, object]],
) -> Mapping[int, Sequence[Sample]]:
    """Read the samples of projects as far back as their windows: a statement per window."""
    found: dict[int, list[Sample]] = defaultdict(list)
    of_window: dict[int, list[int]] = defaultdict(list)
    for project_id, window_s in windows.items():
        of_window[window_s].append(project_id)
    for window_s, ids in of_window.items():
        # Only a window of an hour or of minutes is read: an index of project and time.
        start = now - timedelta(seconds=window_s + monitoring.BASELINE_S)
        for id_, at, values in await session.execute(
            select(MetricSample.project_id, MetricSample.at, MetricSample.values)
            .where(MetricSample.project_id.in_(bindparam("ids", expanding=True)))
            .where(MetricSample.at >= start, MetricSample.at <= now)
            .order_by(MetricSample.at),
            {"ids": ids},
        ):
            found[id_].append(Sample(at, with_limits(values, configs[id_])))
    return found


async def _store(session: AsyncSession, now: datetime, changed: Iterable[Judged]) -> None:
    """Store verdicts and their notices in one transaction.

    A monitor that was changed in the meantime, or judged by another instance, keeps what it has.
    """
    by_id = {each.monitor.id: each for each in changed}
    query = select(Monitor).where(Monitor.id.in_(bindparam("ids", expanding=True)))
    present = await session.scalars(
        query.order_by(Monitor.id).with_for_update(), {"ids": list(by_id)}
    )
    values, events = [], []
    for monitor in present:
        each = by_id[monitor.id]
        is_same = monitor.revision == each.monitor.revision
        if not is_same or standing_of(monitor) != standing_of(each.monitor):
            continue
        standing, event = each.verdict.standing, each.verdict.event
        values.append(
            {
                "id": monitor.id,
                "state": standing.state,
                "since": standing.since,
                "calm_since": standing.calm_since,
                "evaluation_unavailable_reason": each.verdict.measured.reason,
                "last_fired_at": now if event is Event.FIRED else monitor.last_fired_at,
                "last_resolved_at": now if event is Event.RESOLVED else monitor.last_resolved_at,
            }
        )
        if event is not None:
            events.append(
                announcing.announcement(now, monitor, each.spec, each.verdict, each.subject)
            )
    if values:
        await session.execute(update(Monitor), values)
    for announced in events:
        await announcing.enqueue(session, now, announced)
    if events:
        logger.info("monitors changed", extra={"notices": json.dumps(len(events))})
