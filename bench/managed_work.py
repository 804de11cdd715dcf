"""Work in the background of a management service: deployments in order, and monitors."""

import time
from datetime import timedelta

from sqlalchemy import delete, func, insert, select

from bench.managed import Place, Rows
from bench.report import Figure
from caraway_management import composition
from caraway_management.deployments import creating
from caraway_management.domain.monitors import Spec
from caraway_management.monitoring.judging import Judge
from caraway_management.outbox import Worker
from caraway_management.services import Services, utc_now
from caraway_management.store.tables import Lease, MetricSample, Monitor, OutboxEntry, Project
from tests.kit.fake_deployer import FakeDeployer

_DEPLOYMENTS, _MONITORS, _ROUNDS = 1_000, 200, 3
_EVERY_S = 30
_MOST_S, _MOST_SHARE = 60.0, 0.05
_SPEC = Spec(op="GT", threshold=0, window="1h")


async def measure(name: str, place: Place, rows: Rows) -> list[Figure]:
    """Measure deployments that are queued at once, and monitors."""
    async with place.opened() as opened:
        deployer = FakeDeployer()
        services = Services(opened, place.sealer(), deployer=deployer)
        return [
            await _monitors(name, services, rows),
            await _deployments(name, services, deployer, rows),
        ]


async def _deployments(name: str, services: Services, deployer: FakeDeployer, rows: Rows) -> Figure:
    ids: list[int] = []
    async with services.database.change() as session:
        query = select(Project).where(Project.id <= rows.project_ids[_DEPLOYMENTS - 1])
        for project in await session.scalars(query.order_by(Project.id)):
            made = await creating.create_deployment(session, utc_now(), project, "api", "bench")
            ids.append(made.id)
    worker = Worker(services.database, utc_now, composition.handlers(services), at_once=1)
    began = time.perf_counter()
    while await _left(services):
        await worker.run_once()
    took_s = time.perf_counter() - began
    return Figure(
        f"{_DEPLOYMENTS:,} deployments queued at once, all ended in order, {name}; the goal",
        f"{took_s:.1f} s", f"{_MOST_S:.0f} s", took_s / _MOST_S, "≤ 1",
        deployer.started == ids and took_s <= _MOST_S,
    )  # fmt: skip


async def _left(services: Services) -> int:
    async with services.database.read() as session:
        return await session.scalar(select(func.count()).select_from(OutboxEntry)) or 0


async def _monitors(name: str, services: Services, rows: Rows) -> Figure:
    now, projects = utc_now(), rows.project_ids[:_MONITORS]
    monitors = [
        {
            "id": f"bench-{each}", "org_id": rows.org_id, "project_id": each, "name": "Failures",
            "name_key": "failures", "template": "query_failures", "spec": _SPEC.as_json(),
            "targets": {}, "created_at": now, "updated_at": now,
        }
        for each in projects
    ]  # fmt: skip
    values = {"instances": 1, "instances_ready": 1, "queries": 0}
    times = [now - timedelta(seconds=age) for age in range(0, 3_700, _EVERY_S)]
    async with services.database.change() as session:
        # That of the service which has just stopped.
        await session.execute(delete(Lease))
        await session.execute(insert(Monitor), monitors)
        for each in projects:
            samples = [{"project_id": each, "at": at, "values": values} for at in times]
            await session.execute(insert(MetricSample), samples)
    judge = Judge(services, "bench")
    began_s = time.process_time()
    for _ in range(_ROUNDS):
        if await judge.run_once() != _MONITORS:
            raise RuntimeError("the monitors were not judged")
    share = (time.process_time() - began_s) / _ROUNDS / 60
    return Figure(
        f"processor time of {_MONITORS} monitors, {name}; the goal",
        f"{share:.1%} of a core", f"{_MOST_SHARE:.0%}", share / _MOST_SHARE, "≤ 1",
        share <= _MOST_SHARE,
    )  # fmt: skip
