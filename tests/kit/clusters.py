"""A cluster in this process that runs all steps of a query, without Ray."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_executor.statements.scheduler_engine import SchedulerEngine
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.dispatch.cluster import ClusterDispatch
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.single.memory_owner import MemoryOwner
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies
from caraway_scheduler.membership import Membership
from tests.kit.engine import snapshot
from tests.kit.faults import HauntedFleet
from tests.kit.values import WalledEngine

EAGER = Policy(
    small_table_bytes=0,
    spread_bytes=0,
    broadcast_bytes=0,
    gather_bytes=0,
    partition_bytes=1 << 20,
    grouped_first=0,
)
"""Limits that distribute every statement that allows it, with hash partitioning."""
TINY = Policy(
    small_table_bytes=0,
    spread_bytes=0,
    broadcast_bytes=1 << 16,
    gather_bytes=1 << 12,
    grouped_first=0,
)
"""Limits that distribute tables of any size, with exchanges as for large ones."""


@dataclass(slots=True)
class InProcessCluster:
    dispatch: ClusterDispatch
    fleet: HauntedFleet
    membership: Membership
    tallies: DispatchTallies
    engine: SchedulerEngine
    """The scheduler's engine, to which the dispatch passes only values."""

    async def execute(self, sql: str) -> pa.Table:
        stream = await self.dispatch.execute(new_query_id(), Statement(sql, {}))
        # A batch may say of a column that it is never NULL where the plan did not know.
        batches = [
            pa.RecordBatch.from_arrays(batch.columns, schema=stream.schema)
            async for batch in stream
        ]
        return pa.Table.from_batches(batches, schema=stream.schema)

    async def explain(self, sql: str) -> str:
        """Return the cluster's report of where the statement runs."""
        rows = await self.execute(f"EXPLAIN {sql}")
        return str(rows.to_pylist()[-1]["plan"])

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        return await self.dispatch.install(snapshot)


@contextlib.asynccontextmanager
async def in_process_cluster(
    folder: Path,
    tables: Mapping[str, TableSpec | str],
    *,
    executors: int = 2,
    policy: Policy = EAGER,
    settings: EngineSettings | None = None,
) -> AsyncIterator[InProcessCluster]:
    """Start a cluster; the block begins when every executor is ready."""
    settings = settings or EngineSettings(2)
    ids = [ExecutorId(f"e{number}") for number in range(1, executors + 1)]
    fleet = HauntedFleet(ids, settings)
    store = SqliteStateStore(folder / "state.db")
    membership = Membership(fleet, store, "here", build="test", every_s=0.05)
    engine = WalledEngine(settings)
    dispatch = ClusterDispatch(
        fleet,
        membership,
        engine,
        "here",
        MemoryOwner(store),
        policy,
        OwnFiles(folder / "cache"),
    )
    calling = asyncio.ensure_future(membership.run(dispatch))
    try:
        assert not await dispatch.install(snapshot(tables))
        assert await membership.wait_ready(executors, 60)
        yield InProcessCluster(dispatch, fleet, membership, dispatch.tallies, engine.inner)
    finally:
        calling.cancel()
        await asyncio.wait([calling])
        await dispatch.aclose()
        await store.aclose()
