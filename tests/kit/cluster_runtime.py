"""Runs a whole scheduler in the test process, with new executors in the same process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from caraway_assist.hosting.service import Hosting
from caraway_core.ids import ExecutorId
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.statements.scheduler_engine import SchedulerEngine
from caraway_gateway.composition.backend import Backend
from caraway_gateway.services import Services
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.dispatch.cluster import ClusterDispatch
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.single.memory_owner import MemoryOwner
from caraway_scheduler.membership import Membership
from tests.kit.clusters import TINY
from tests.kit.faults import HauntedFleet
from tests.kit.runtime import Running, running


@dataclass(frozen=True, slots=True)
class Clustered:
    """A scheduler under test, and its executors."""

    runtime: Running
    fleet: HauntedFleet
    membership: Membership
    dispatch: ClusterDispatch


@asynccontextmanager
async def clustered(
    folder: Path,
    manifest: str,
    *,
    executors: int = 2,
    policy: Policy = TINY,
    before: Callable[[Services], None] = lambda _services: None,
    state: Path | None = None,
) -> AsyncIterator[Clustered]:
    """Serve a manifest; as in a new cluster, executors are unknown when loading begins.

    With `state`, other schedulers may share that state file.
    """
    settings = EngineSettings(2)
    fleet = HauntedFleet([ExecutorId(f"e{n}") for n in range(1, executors + 1)], settings)
    store = SqliteStateStore(state or folder / "cluster.db")
    membership = Membership(fleet, store, "here", build="test", every_s=0.05, install_wait_s=5)
    engine, owner = SchedulerEngine(LocalExecutor(settings)), MemoryOwner(store)
    dispatch = ClusterDispatch(
        fleet, membership, engine, "here", owner, policy, OwnFiles(folder / "cache")
    )
    backend = Backend(
        dispatch,
        is_scheduler=True,
        tallies=dispatch.tallies,
        report_failures=dispatch.report_failures,
        scheduler_id="here",
        state=store,
        is_shared=state is not None,
        hosting=(hosting := Hosting(fleet, membership, "here")),
    )
    calling = asyncio.create_task(membership.run(dispatch))
    try:
        async with running(folder, manifest, backend=backend, before=before) as runtime:
            yield Clustered(runtime, fleet, membership, dispatch)
    finally:
        calling.cancel()
        await asyncio.wait((calling,))
        await hosting.aclose()
        await dispatch.aclose()
        await store.aclose()
