"""A scheduler's membership with executors that a test starts and ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from caraway_core.ids import CatalogVersion
from caraway_core.protocols.fleet import TableCatalog
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.membership import Membership, RollListener
from tests.kit.clocks import Clock
from tests.kit.fleets import FakeFleet

EVERY_S = 0.005
WAIT_S = 60.0


@dataclass
class Cluster:
    fleet: FakeFleet
    membership: Membership
    store: SqliteStateStore
    clock: Clock
    listener: RollListener

    @property
    def states(self) -> dict[str, str]:
        return {str(one.executor_id): one.state for one in self.membership.executors()}

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that the heartbeats bring about."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self.rounds(1)

    async def rounds(self, count: int) -> None:
        """Wait for this many more heartbeat rounds."""
        until = self.fleet.rounds + count
        async with asyncio.timeout(WAIT_S):
            while self.fleet.rounds < until:
                self.membership._call.turned.clear()
                await self.membership._call.turned.wait()


@asynccontextmanager
async def cluster(folder: Path, *executor_ids: str, version: int = 1) -> AsyncIterator[Cluster]:
    """Run a membership over these executors; with a `version`, wait until they are ready."""
    fleet, clock = FakeFleet(*executor_ids), Clock()
    store = SqliteStateStore(folder / "state.db", clock)
    membership = Membership(
        fleet, store, "here", clock, build="1.0", every_s=EVERY_S, install_wait_s=1.0
    )
    listener = RollListener()
    running = asyncio.create_task(membership.run(listener))
    found = Cluster(fleet, membership, store, clock, listener)
    try:
        if version:
            await found.until(lambda: len(found.states) == len(executor_ids))
            await membership.install(catalog(version))
            assert await membership.wait_ready(len(executor_ids), WAIT_S)
        yield found
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await store.aclose()


def catalog(version: int) -> TableCatalog:
    return TableCatalog(CatalogVersion(version), "here", {})
