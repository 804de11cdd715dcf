"""Loads accelerated datasets on executors, and indexes them, before statements need them."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from caraway_core.changes import Log
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.tables import StoredTable
from caraway_scheduler.dispatch.indexes.index_building import IndexBuilding
from caraway_scheduler.dispatch.loading.loading import Loader
from caraway_scheduler.membership import Membership

logger = logging.getLogger(__name__)
Tables = Callable[[], Sequence[tuple[TableName, StoredTable, Log]]]
"""Returns the accelerated datasets that statements read now, with their logs."""
_SETTLED_S = 1.0


class Warmer:
    """Lets executors load and index their future shares. If that fails, the first reads do it."""

    def __init__(
        self, loader: Loader, building: IndexBuilding, membership: Membership, tables: Tables
    ) -> None:
        self._loader = loader
        self._building = building
        self._membership = membership
        self._tables = tables

    async def prepare(self, executor_id: ExecutorId) -> None:
        """Let an executor that is about to be ready load and index its share of every dataset.

        The other executors do so with the shares that change with it, because partitions are dealt
        by size.
        """
        # Includes executors that are joining, so that the first of several does not take
        # everything.
        coming = {
            each.executor_id
            for each in self._membership.executors()
            if each.state in ("registered", "ready")
        }
        owners = sorted({*coming, executor_id})
        takers = sorted({*self._ready(), executor_id})
        for table, spec, log in self._tables():
            shares = (self._prepared(table, spec, log, owners, taker) for taker in takers)
            for failure in await asyncio.gather(*shares, return_exceptions=True):
                if isinstance(failure, CarawayError):
                    extra = {"dataset": table, "cause": failure.message}
                    logger.info("dataset share is loaded or indexed on first read", extra=extra)
                elif failure is not None:
                    raise failure

    async def _prepared(
        self,
        table: TableName,
        spec: StoredTable,
        log: Log,
        owners: Sequence[ExecutorId],
        taker: ExecutorId,
    ) -> None:
        await self._loader.load_share(table, spec, log, owners, taker)
        await self._building.build(table, spec, log, owners, taker)

    async def run(self) -> None:
        """Keep as many copies on executors as datasets request, until cancelled."""
        executor_ids = self._ready()
        while True:
            await self._membership.wait_changed()
            await asyncio.sleep(_SETTLED_S)
            if (ready := self._ready()) == executor_ids:
                continue
            executor_ids = ready
            for table, spec, log in self._tables():
                if spec.replicas > 1 and ready:
                    try:
                        await self._loader.load(table, spec, log)
                    except CarawayError as exc:
                        extra = {"dataset": table, "cause": exc.message}
                        logger.info("dataset has too few copies for now", extra=extra)

    def _ready(self) -> frozenset[ExecutorId]:
        return frozenset(member.executor_id for member in self._membership.ready())
