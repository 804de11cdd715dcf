"""Runs the background tasks of one accelerated dataset, and starts and stops them together."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from caraway_acceleration.changes import changing
from caraway_acceleration.changes.changed_vectors import ChangedVectors
from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.changes.early_entries import EarlyEntries
from caraway_acceleration.changes.feed import Feed
from caraway_acceleration.changes.following import Following
from caraway_acceleration.changes.ingesting import BaseWithLog, Ingest, StreamStoppedError
from caraway_acceleration.changes.learned_columns import LearnedColumns
from caraway_acceleration.recipes import generated
from caraway_acceleration.recipes.generated import GeneratedVectors
from caraway_acceleration.refresh import plans
from caraway_acceleration.refresh.refresh_events import RefreshAsked
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.refresh.reloading import LoadPlan
from caraway_acceleration.refresh.sources import DatasetSources, VectorModels
from caraway_acceleration.upkeep.compaction import Compactor
from caraway_acceleration.upkeep.repairing import Repairing
from caraway_acceleration.upkeep.snapshotting import Snapshotting
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.loading import registry
from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.partitions.keys import BucketKey, PartitionBy
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.embedding import mark_of
from caraway_core.protocols.results import ResultStore
from caraway_plugins.changes import registry as schema_registries
from caraway_plugins.changes.target import ChangeTarget

logger = logging.getLogger(__name__)
_BUCKETS = 8
_DELAYS = Delays(1.0, 10.0, jitter=0.2)
_FOLLOWING = "/following"


@dataclass(frozen=True, slots=True)
class DatasetContext:
    """The sources, ingest, store of chunks and models that the tasks of all datasets share."""

    sources: DatasetSources
    ingest: Ingest
    results: ResultStore
    models: VectorModels | None = None


class Accelerated:
    """The refresher of a dataset, with the tasks that apply changes and maintain it."""

    def __init__(
        self,
        dataset: Dataset,
        acceleration: Acceleration,
        plan: LoadPlan,
        current: CurrentVersion,
        refresher: Refresher,
        context: DatasetContext,
        snapshotting: Snapshotting | None = None,
    ) -> None:
        self.dataset = dataset
        self.acceleration = acceleration
        self.plan = plan
        self.refresher = refresher
        self.feed: Feed | None = None
        self.following: Following | None = None
        self.current = current
        self.snapshotting = snapshotting
        self._has_begun, self._has_source = asyncio.Event(), asyncio.Event()
        self._bucketed = plan.bucketed
        self._ingest = context.ingest
        self._sources = context.sources
        self._results = context.results
        self._params: Mapping[str, str] | None = None
        self._registry: schema_registries.Registry | None = None
        self.columns: LearnedColumns | None = None
        if registry.connector(dataset.connector).is_only_followed and not dataset.columns:
            self.columns = LearnedColumns(current)
        known = self.columns.known if self.columns is not None else lambda: None
        self._change_source = partial(self._sources.change_source, dataset, known)
        self._tasks = tasks.Tasks()
        self._marks: dict[str, str] = {}
        self._outdated = ""
        """The statement of a version with vectors of another model, once a refresh is asked."""
        self._predecessor: Accelerated | None = None
        self._repairing = Repairing(current, refresher, snapshotting, plan.settings.refresh_mode)
        self._repair: asyncio.Task[None] | None = None
        kept = acceleration.retention
        every_s = kept.check_interval_s if kept else None
        self.compactor = Compactor(current, plan.recipe, context.results, every_s)
        if plan.settings.refresh_mode == "changes":
            embedded, models = dataset.search.embedded, context.models
            self.feed = Feed(
                current,
                context.results,
                self,
                vectors=ChangedVectors(embedded, models.vectors) if embedded and models else None,
            )

    def start_tasks(self, predecessor: "Accelerated | None" = None) -> None:
        """Start the tasks, once the cancelled predecessor has ended its own."""
        self._predecessor = predecessor
        self._spawn(self._keep, "refresh a dataset")
        if self.snapshotting is not None:
            self._spawn(self.snapshotting.run, "make snapshots")
        self._spawn(self.compactor.run, "keep a dataset up")
        if self.feed is not None:
            self._spawn(partial(self._feed, self.feed), "apply changes")

    def cancel(self) -> None:
        """Cancel all tasks."""
        if self.feed is not None:
            self.feed.stop()
        self._tasks.cancel()
        self.current.stop()

    async def ended(self) -> None:
        """Wait until all cancelled tasks have ended."""
        await self._tasks.ended()
        await self.current.ended()
        self._predecessor = None

    async def reach(self, revision: int) -> None:
        """Let readers see the version of a revision, or a later one."""
        await self._in_turn(partial(self.current.reach, revision))

    def source_loaded(self) -> None:
        """Note that the source can be read."""
        self._has_source.set()
        self.refresher.source_loaded()
        self._check_models()

    def news(self, revision: int | None = None) -> None:
        """Note that the state store has another version, possibly of another scheduler."""
        held = self.current.held
        if revision is None or held is None or held.revision < revision:
            self.refresher.news()

    def target(self) -> ChangeTarget:
        """Return the columns and keys that its changes are decoded for.

        Raises:
            StreamStoppedError: it is not ready for changes yet.
        """
        assert self.feed is not None
        is_awaited = self.columns is not None and self.columns.is_awaited
        if self.current.shown is None and not is_awaited:
            raise StreamStoppedError(
                f"dataset '{self.plan.name}' is being loaded and takes no changes yet; try again"
            )
        if self._params is None:
            self._params = self._sources.params(self.dataset)
            self._registry = schema_registries.of_params(self._params)
        keys = self.current.subject.keys
        return ChangeTarget(
            pa.schema([]) if is_awaited else self.feed.schema,
            keys.primary if keys else (),
            "first" if plans.twice_of(self.acceleration) == "first" else "last",
            self._params.get("avro_schema"),
            self._registry,
            self.columns is not None,
        )

    def changeable(self) -> Changeable:
        """Return what statements need to change it, in its current state.

        Raises:
            StreamStoppedError: it is not ready for changes yet.
        """
        target, version = self.target(), self.current.shown
        if version is None:
            raise StreamStoppedError(
                f"dataset '{self.plan.name}' has no columns before its first events"
            )
        twice = plans.twice_of(self.acceleration)
        upon = BaseWithLog(version.key, version.read_log)
        return Changeable(self.plan.name, target.schema, target.primary_key, twice, upon)

    def early_entries(self, *, replaces: bool) -> EarlyEntries | None:
        """Return what stores the rows of an upload while they arrive; None if they must be whole.

        Raises:
            StreamStoppedError: it is not ready for changes yet.
        """
        dataset = self.changeable()
        # Vectors are made of the changes as a whole.
        if self.dataset.search.embedded or changing.op_of(dataset) is None:
            return None
        return EarlyEntries(dataset, self._results, self._tasks, replaces=replaces)

    def model_ready(self, model: str, identity: str) -> None:
        """Have vectors made again that another model made; until then the old ones are read."""
        self._marks[model] = mark_of(identity)
        self._check_models()

    def _check_models(self) -> None:
        version, mode = self.current.shown, self.plan.settings.refresh_mode
        vectors = [
            GeneratedVectors.from_column(each, self._marks[each.embedder])
            for each in self.plan.search.embedded
            if each.embedder in self._marks
        ]
        if version is not None and self.feed is not None and self._has_source.is_set():
            has = set(self.feed.schema.names)
            columns = [each for each in self.plan.search.embedded if each.vector_column not in has]
            if columns and all(each.embedder in self._marks for each in columns):
                self.compactor.vectors_by(
                    [
                        GeneratedVectors.from_column(each, self._marks[each.embedder])
                        for each in columns
                    ]
                )
        if version is None or mode not in ("full", "append"):
            return
        if not generated.is_outdated(version.sql, vectors) or version.sql == self._outdated:
            return
        self._outdated = version.sql
        logger.info("vectors are made by another model", extra={"dataset": self.plan.name})
        try:
            self.refresher.ask(RefreshAsked())
        except CarawayError as exc:
            extra = {"dataset": self.plan.name, "cause": exc.message}
            logger.warning("vectors are not made again", extra=extra)

    def moved(self) -> None:
        """Note that readers see another state."""
        if self.columns is not None:
            self.columns.found()
        self._check_models()
        if self.snapshotting is not None:
            self.snapshotting.news()

    def damaged(self) -> None:
        """Repair stored rows that cannot be read, unless a repair is running."""
        is_under_way = self._repair is not None and not self._repair.done()
        if not is_under_way and not self.refresher.state.damaged:
            self._repair = self._tasks.spawn(
                self._repairing.restore_rows(),
                "repair stored rows",
                partial(self._failed, "repair its stored rows"),
                dataset=self.plan.name,
            )

    async def _keep(self) -> None:
        if self.snapshotting is not None:
            await self.snapshotting.start_from_snapshot()
        self._has_begun.set()
        await self.refresher.run()

    async def _feed(self, feed: Feed) -> None:
        """Ensure that a version exists, then apply changes, and follow a source if there is one."""
        await self._has_begun.wait()
        again = Backoff(_DELAYS)
        while True:
            try:
                held = await self.current.look()
                if self.columns is not None:
                    self._follow(None if self.following else self._change_source())
                    await self.columns.wait()
                elif held is None or not self.current.is_readable(held.version):
                    await self._has_source.wait()
                source = None if self.following else self._change_source()
                if source is not None and not self.acceleration.primary_key:
                    self._adopt(await source.primary_key())
                await feed.ensure_version()
                if self.columns is not None:
                    self.columns.begun()
                break
            except StateAwayError as exc:
                logger.warning("changes wait for the state store", extra={"cause": exc.message})
            except CarawayError as exc:
                self.refresher.fail(exc.message)
            await asyncio.sleep(again.failed())
        self.refresher.fail("")
        self._follow(source)
        await feed.run()

    def _follow(self, source: ChangeSource | None) -> None:
        """Apply the changes of a source from now on, if there is one."""
        if source is None:
            return
        claim = self.current.claim(_FOLLOWING)
        self.following = Following(
            self.plan.name, source, self._ingest, claim, self._report, clock=self.current.clock
        )
        self._spawn(self.following.run, "follow a source")

    def _adopt(self, primary_key: tuple[str, ...]) -> None:
        """Use the primary key of the source if the manifest has none."""
        if primary_key:
            self.current.adopt(primary_key)
            self._bucketed = plans.bucketed(self.acceleration, primary_key)

    def _report(self, error: CarawayError | None) -> None:
        self.refresher.fail(error.message if error is not None else "")

    def changes_logged(self) -> None:
        """Note that changes were logged."""
        self.refresher.moved()
        self.compactor.news()

    def source_schema(self) -> pa.Schema:
        """Return the columns of the source, or those learned from its events."""
        columns = self._sources if self.columns is None else self.columns
        return columns.source_schema(self.plan.name)

    def partition_terms(self) -> PartitionBy:
        """Return the terms by which a first version is partitioned."""
        by = self.acceleration.partition_by
        if by.terms or self._bucketed is None:
            return by
        buckets = 1 if self._bucketed.is_one else _BUCKETS
        return PartitionBy((BucketKey(buckets, self._bucketed.column),))

    async def _in_turn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        # Two lives of a dataset would otherwise show versions to the same readers in any order.
        if self._predecessor is not None:
            await self._predecessor.ended()
        await work()

    def _spawn(self, work: Callable[[], Coroutine[object, object, None]], kind: str) -> None:
        failed = partial(self._failed, kind)
        self._tasks.keep(partial(self._in_turn, work), kind, failed, dataset=self.plan.name)

    def _failed(self, kind: str, exc: BaseException) -> None:
        """Report an unexpected failure; the task is restarted with back-off."""
        self.refresher.fail(
            f"the task '{kind}' failed unexpectedly and is retried; the scheduler's log has "
            "the cause"
        )
