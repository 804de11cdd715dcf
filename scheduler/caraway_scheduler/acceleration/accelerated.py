"""One accelerated dataset of a scheduler: all that works on it, begun and ended together."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pyarrow as pa

from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.manifest import Dataset, arrow_type
from caraway_core.manifest.acceleration import Acceleration
from caraway_core.partitions.keys import Bucket, PartitionBy
from caraway_core.protocols.results import ResultStore
from caraway_plugins.changes.target import ChangeTarget
from caraway_scheduler.acceleration import plans
from caraway_scheduler.acceleration.feed import Feed
from caraway_scheduler.acceleration.head import Head
from caraway_scheduler.acceleration.keeper import Keeper, Plan
from caraway_scheduler.acceleration.snapshotting import Snapshotting
from caraway_scheduler.acceleration.upkeep import Upkeep

logger = logging.getLogger(__name__)
_BUCKETS = 8
_AGAIN_S = 5.0


class Accelerated:
    """Runs the keeper, and beside it what applies changes and what sees to the upkeep."""

    def __init__(
        self,
        dataset: Dataset,
        acceleration: Acceleration,
        plan: Plan,
        head: Head,
        keeper: Keeper,
        results: ResultStore,
        snapshotting: Snapshotting | None = None,
    ) -> None:
        self.dataset = dataset
        self.acceleration = acceleration
        self.plan = plan
        self.keeper = keeper
        self.feed: Feed | None = None
        self._head = head
        self._snapshotting = snapshotting
        self._has_begun = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        kept = acceleration.retention
        every_s = kept.check_interval_s if kept else None
        self.upkeep = Upkeep(head, plan.recipe, results, every_s)
        if plan.settings.refresh_mode == "changes":
            self.feed = Feed(head, results, self._declared, self._cut, self._changed)

    def begin(self) -> None:
        name = self.plan.name
        self._spawn(self._keep(), f"refresh {name}")
        if self._snapshotting is not None:
            self._spawn(self._snapshotting.run(), f"snapshots of {name}")
        self._spawn(self.upkeep.run(), f"upkeep of {name}")
        if self.feed is not None:
            self._spawn(self._feed(self.feed), f"changes to {name}")

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Wait until all that was cancelled has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def news(self, revision: int | None = None) -> None:
        """The state store has another version, perhaps of another scheduler."""
        held = self._head.held
        if revision is None or held is None or held.revision < revision:
            self.keeper.news()

    def target(self) -> ChangeTarget:
        """Return what its changes are read by; it takes them."""
        assert self.feed is not None
        params = self.dataset.params
        return ChangeTarget(
            self.feed.schema,
            self.acceleration.primary_key,
            "first" if plans.twice_of(self.acceleration) == "first" else "last",
            params.get("avro_schema"),
        )

    def moved(self) -> None:
        """Readers see another state."""
        if self._snapshotting is not None:
            self._snapshotting.news()

    async def _keep(self) -> None:
        if self._snapshotting is not None:
            await self._snapshotting.begin()
        self._has_begun.set()
        await self.keeper.run()

    async def _feed(self, feed: Feed) -> None:
        await self._has_begun.wait()
        while True:
            try:
                await feed.begin()
                break
            except StateAwayError as exc:
                logger.warning("changes have to wait", extra={"cause": exc.message})
            except CarawayError as exc:
                self.keeper.fail(exc.message)
            await asyncio.sleep(_AGAIN_S)
        await feed.run()

    def _changed(self) -> None:
        self.keeper.moved()
        self.upkeep.news()

    def _declared(self) -> pa.Schema:
        """Return the columns that the manifest declares."""
        return pa.schema(
            [
                pa.field(column.name, arrow_type(column.type))
                for column in self.dataset.columns
                if column.type
            ]
        )

    def _cut(self) -> PartitionBy:
        by = self.acceleration.partition_by
        if by.terms or self.plan.bucketed is None:
            return by
        return PartitionBy((Bucket(_BUCKETS, self.plan.bucketed),))

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_tell_failure)
        self._tasks.append(task)


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (exc := task.exception()) is not None:
        logger.error("a dataset is not kept any more", exc_info=exc)
