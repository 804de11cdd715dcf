import asyncio

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import composition
from caraway_management.deployments import creating
from caraway_management.domain.deployments import Status
from caraway_management.outbox import Worker
from caraway_management.store.database import Database
from caraway_management.store.tables import Deployment, Org, OutboxEntry, Project
from tests.kit.deployed_projects import MANIFEST
from tests.kit.management import Installation

NUMBERS = [30, pytest.param(1_000, marks=pytest.mark.full)]


def _queue(installation: Installation, number: int) -> list[int]:
    """Queue a deployment of each of `number` projects in one transaction; return their ids."""
    org = installation.add_org("many", installation.add_user())
    now = installation.clock()

    async def add(session: AsyncSession) -> list[int]:
        await session.get_one(Org, org.id)
        ids = []
        for each in range(number):
            name = f"shop-{each}"
            project = Project(
                org_id=org.id, name=name, name_key=name, tags={}, manifest=MANIFEST, config={},
                created_at=now, updated_at=now,
            )  # fmt: skip
            session.add(project)
            await session.flush()
            row = await creating.create_deployment(session, now, project, "api", "test")
            ids.append(row.id)
        return ids

    return installation.change(add)


@pytest.mark.parametrize("number", NUMBERS)
def test_deployments_that_are_queued_at_once_end_in_order(
    installation: Installation, number: int
) -> None:
    ids = _queue(installation, number)
    services = installation.services
    worker = Worker(services.database, services.now, composition.handlers(services), at_once=1)

    async def finish() -> None:
        while await worker.run_once():
            installation.clock.advance(milliseconds=1)

    installation.run(finish)
    assert installation.deployer.started == ids
    done = select(Deployment.id).where(Deployment.status == Status.SUCCEEDED)
    assert installation.rows(done.order_by(Deployment.finished_at, Deployment.id)) == ids
    assert installation.rows(select(func.count()).select_from(OutboxEntry)) == [0]


def test_two_instances_share_deployments_and_start_each_once(installation: Installation) -> None:
    ids = _queue(installation, 20)
    services = installation.services
    workers = [
        Worker(services.database, services.now, composition.handlers(services), at_once=3)
        for _ in range(2)
    ]

    async def finish() -> None:
        async def work(worker: Worker) -> None:
            while await _left(services.database):
                await worker.run_once()
                installation.clock.advance(milliseconds=100)

        await asyncio.gather(*map(work, workers))

    installation.run(finish)
    assert sorted(installation.deployer.started) == ids
    assert set(installation.rows(select(Deployment.status))) == {Status.SUCCEEDED}


async def _left(database: Database) -> int:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(OutboxEntry)) or 0
