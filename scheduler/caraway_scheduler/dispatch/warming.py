"""Accelerated rows come to executors before statements do, as executors join and others go."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from caraway_core.changes import Log
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.tables import StoredTable
from caraway_scheduler.dispatch.loading import Loader
from caraway_scheduler.membership import Membership

logger = logging.getLogger(__name__)
Tables = Callable[[], Sequence[tuple[TableName, StoredTable, Log]]]
"""The accelerated datasets that statements read now, and how far their logs count."""
_SETTLED_S = 1.0


class Warmer:
    """Has executors load what will be theirs. What fails is loaded when a statement reads it."""

    def __init__(self, loader: Loader, membership: Membership, tables: Tables) -> None:
        self._loader = loader
        self._membership = membership
        self._tables = tables

    async def prepare(self, executor_id: ExecutorId) -> None:
        """Have an executor that is about to be ready load its part of every dataset.

        The others load what becomes theirs with that: parts that are dealt out by size shift.
        """
        # With those that are on their way, too: of several that begin at once none takes all.
        coming = {
            each.executor_id
            for each in self._membership.executors()
            if each.state in ("registered", "ready")
        }
        owners = sorted({*coming, executor_id})
        takers = sorted({*self._ready(), executor_id})
        for table, spec, log in self._tables():
            loads = (self._loader.load_share(table, spec, log, owners, taker) for taker in takers)
            for failure in await asyncio.gather(*loads, return_exceptions=True):
                if isinstance(failure, CarawayError):
                    extra = {"dataset": table, "cause": failure.message}
                    logger.info("a part of a dataset is loaded later", extra=extra)
                elif failure is not None:
                    raise failure

    async def run(self) -> None:
        """Keep copies on as many executors as datasets ask for, until cancelled."""
        known = self._ready()
        while True:
            await self._membership.wait_changed()
            await asyncio.sleep(_SETTLED_S)
            if (ready := self._ready()) == known:
                continue
            known = ready
            for table, spec, log in self._tables():
                if spec.replicas > 1 and ready:
                    try:
                        await self._loader.load(table, spec, log)
                    except CarawayError as exc:
                        extra = {"dataset": table, "cause": exc.message}
                        logger.info("a dataset has fewer copies for now", extra=extra)

    def _ready(self) -> frozenset[ExecutorId]:
        return frozenset(member.executor_id for member in self._membership.ready())
