"""A scheduler with executors that a test starts, loses and drains."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_gateway.services import Services
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.membership import Membership, RollListener
from tests.kit.clocks import Clock
from tests.kit.fleets import FakeFleet
from tests.kit.runtime import Running, running
from tests.kit.turns import turn

WAIT_S = 60.0


class Cluster(InProcessDispatch):
    """The standalone dispatch, with the executors of a membership."""

    membership: Membership

    def executors(self) -> tuple[ExecutorStatus, ...]:
        return self.membership.executors()


@asynccontextmanager
async def cluster(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fleet: FakeFleet, clock: Clock
) -> AsyncIterator[tuple[Running, Membership]]:
    """Yield a runtime in the scheduler role, with the executors of the fleet."""
    monkeypatch.setattr("caraway_gateway.composition.backend.InProcessDispatch", Cluster)
    store = SqliteStateStore(folder / "state.db")
    membership = Membership(
        fleet, store, "here", clock, build="1.0", every_s=0.005, install_wait_s=0.1
    )
    Cluster.membership = membership
    calling = asyncio.create_task(membership.run(RollListener()))

    def altered(services: Services) -> Services:
        return replace(
            services,
            is_scheduler=True,
            scheduler_count=lambda: membership.scheduler_count,
        )

    try:
        async with running(folder, "", altered=altered) as runtime:
            yield runtime, membership
    finally:
        calling.cancel()
        await asyncio.wait((calling,))
        await store.aclose()


async def settled(membership: Membership, **expected: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while {str(one.executor_id): one.state for one in membership.executors()} != expected:
            await turn()
