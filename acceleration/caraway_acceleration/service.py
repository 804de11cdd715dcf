"""Manages the accelerated datasets of a scheduler, and handles requests for them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from caraway_acceleration import missing
from caraway_acceleration.accelerated import Accelerated, DatasetContext
from caraway_acceleration.asking import RefreshRequests
from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.changes.early_entries import EarlyEntries
from caraway_acceleration.changes.ingesting import BaseWithLog, ChangesRefusedError, SourcePositions
from caraway_acceleration.newest import NewestVersions, ReadingFunctions
from caraway_acceleration.parents import Parents
from caraway_acceleration.refresh import plans
from caraway_acceleration.refresh.counting import Counting, RefreshRecords
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.refresh.refreshing import RefreshState, status
from caraway_acceleration.refresh.sources import VectorModels
from caraway_acceleration.snapshot_requests import (
    SnapshotPlace,
    SnapshotRequests,
    snapshotting_of,
)
from caraway_acceleration.sources import PassthroughSources
from caraway_acceleration.standings import standings
from caraway_acceleration.standings.standings import DatasetStanding
from caraway_acceleration.upkeep.orphans import OrphanCollector
from caraway_acceleration.versions import partition_listing
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_acceleration.versions.making import StoredSize, VersionMaker
from caraway_acceleration.versions.versions import VersionStore, name_in
from caraway_core.changes import Changes
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import (
    CarawayError,
    DatasetError,
)
from caraway_core.ids import TableName
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_plugins.changes.target import ChangeTarget
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import DatasetState

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.5, 5.0, jitter=0.2)


@dataclass(frozen=True, slots=True)
class VersionStorage:
    """The records of versions, their chunks, the place of these, and that of snapshots."""

    state: StateStore
    chunks: ResultStore
    place: ResultPlace
    snapshots: SnapshotPlace | None = None


@dataclass(frozen=True, slots=True)
class StoreSharing:
    """The name of this scheduler, and whether others may write to the same store.

    If it `asks_newest`, statements read what others acknowledged.
    """

    owner: str
    is_shared: bool = False
    asks_newest: bool = False


class Accelerations:
    """Starts and stops the work on accelerated datasets, and follows versions in the state store.

    It also implements `Ingest` for changes.
    """

    def __init__(
        self,
        make_catalog: Callable[["Accelerations"], Catalog],
        dispatch: Dispatch,
        storage: VersionStorage,
        sharing: StoreSharing,
        records: RefreshRecords | None = None,
        models: VectorModels | None = None,
        functions: ReadingFunctions | None = None,
    ) -> None:
        self.counting = Counting(records)
        self._models = models
        self.catalog = catalog = make_catalog(self)
        self._maker = VersionMaker(dispatch, storage.place, self)
        self._versions = VersionStore(storage.state, sharing.owner)
        self._results = storage.chunks
        self._dispatch = dispatch
        self.snapshots = SnapshotRequests(self._accelerated, storage.snapshots)
        self._orphans = OrphanCollector(
            self._versions, storage.chunks, storage.place.title, lambda: datetime.now(UTC)
        )
        self._kept: dict[TableName, Accelerated] = {}
        self._asking = RefreshRequests(
            self._kept,
            self._versions,
            self._maker,
            catalog,
            is_shared=sharing.is_shared,
        )
        self._parents = Parents(self._kept, lambda: catalog.planned, self._versions.revisions)
        self._newest: NewestVersions | None = None
        if sharing.asks_newest:
            self._newest = NewestVersions(catalog, self._kept, self._versions.revisions, functions)
        # Cached, because each statement asks for them.
        self._sources: PassthroughSources | None = None
        self._ending: dict[TableName, Accelerated] = {}
        self._named: set[TableName] = set()

    def accelerate_dataset(self, state: DatasetState, acceleration: Acceleration) -> None:
        """Start the acceleration of a dataset, replacing an earlier one with the same name."""
        self.end(state.name)
        # Even if it cannot be accelerated, its rows must not be collected until that is fixed.
        self._named.add(state.name)
        try:
            plan = plans.plan_of(state.dataset, acceleration, state.ready_state)
        except ValueError as exc:
            failure = DatasetError("invalid", f"dataset '{state.name}': {exc}")
            logger.warning("dataset is not accelerated", extra={"reason": failure.message})
            self.catalog.tell(state.name, "error", failure)
            return
        subject = plans.subject_of(state.dataset, acceleration)
        current = CurrentVersion(
            subject,
            self._maker,
            self._versions,
            self._results,
            self.catalog.show,
            lambda: datetime.now(UTC),
            self,
        )
        refresher = Refresher(
            plan,
            current,
            self._tell,
            self.catalog,
            counting=self.counting,
            models=self._models,
        )
        if plan.is_following:
            refresher.follow(partial(self._parents.position, state.name))
        kept = Accelerated(
            state.dataset,
            acceleration,
            plan,
            current,
            refresher,
            DatasetContext(self.catalog, self, self._results, self._models),
            snapshotting_of(current, acceleration, self.snapshots.place, self._dispatch),
        )
        self._kept[state.name] = kept
        self._changed()
        kept.start_tasks(self._ending.pop(state.name, None))

    def end(self, name: TableName) -> None:
        """Stop the acceleration of a dataset."""
        kept = self._kept.pop(name, None)
        self._changed()
        if kept is not None:
            kept.cancel()
            self._ending[name] = kept
        self._named.discard(name)
        self._versions.end(name)

    def _changed(self) -> None:
        self._sources = None
        if self._newest is not None:
            self._newest.changed()

    def model_ready(self, model: str, identity: str) -> None:
        """Note that an embedding model is loaded, which may be another one than before."""
        for kept in self._kept.values():
            kept.model_ready(model, identity)

    def source_loaded(self, name: TableName) -> None:
        kept = self._kept.get(name)
        if kept is not None:
            kept.source_loaded()

    async def run(self) -> None:
        """Follow versions of other schedulers, and mark the datasets of this one as in use.

        Ends when it is cancelled or the state store is closed.
        """
        owned = tasks.Tasks()
        owned.keep(partial(self._orphans.run, lambda: self._named), "mark datasets as kept")
        read = partial(self._versions.reads.run, self._dispatch.under_way)
        owned.keep(read, "write down what statements read")
        await self._asking.follow_requests(owned)
        try:
            await self._follow()
        finally:
            await owned.aclose()

    def mentioned(self, sql: str) -> frozenset[TableName]:
        """Return the datasets whose newest version a statement must read.

        There are none if no other scheduler can change them.
        """
        return self._newest.mentioned(sql) if self._newest is not None else frozenset()

    def may_keep(self, sql: str) -> bool:
        """Return whether an answer may be cached: no other scheduler writes to its tables."""
        return self._newest is None or self._newest.may_keep(sql)

    async def caught_up(self, sql: str) -> None:
        """Wait until a statement would read everything that was acknowledged."""
        if self._newest is not None:
            await self._newest.caught_up(sql)

    async def _follow(self) -> None:
        again = Backoff(_DELAYS)
        while True:
            try:
                async for entry in self._versions.watch():
                    again.succeeded()
                    kept = self._kept.get(name_in(entry))
                    if kept is not None and entry.value:
                        kept.news(entry.revision)
                return
            except CarawayError as exc:
                logger.warning("version watch lost the state store", extra={"cause": exc.message})
            for kept in self._kept.values():
                kept.news()
            await asyncio.sleep(again.failed())

    async def aclose(self) -> None:
        """Stop all datasets, and wait until their tasks have ended."""
        for kept in self._kept.values():
            kept.cancel()
        if self._newest is not None:
            await self._newest.aclose()
        ending = (*self._kept.values(), *self._ending.values())
        await asyncio.gather(*(kept.ended() for kept in ending))
        self._kept.clear()
        self._changed()

    async def refresh(self, name: TableName, body: Mapping[str, object]) -> None:
        """Request a refresh; raises as `standing` and `RefreshRequests.refresh` do."""
        await self._asking.refresh(self._accelerated(name), body)

    async def set_refresh_sql(self, name: TableName, sql: str | None) -> None:
        """Change its `refresh_sql`; raises as `standing` and `RefreshRequests.set_sql` do."""
        await self._asking.set_sql(self._accelerated(name), sql)

    def standing(self, name: TableName) -> DatasetStanding:
        """Return the state of an accelerated dataset.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such accelerated dataset.
        """
        return self._standing(self._accelerated(name))

    def standings(self) -> Sequence[DatasetStanding]:
        """Return the state of all accelerated datasets."""
        return [self._standing(kept) for kept in self._kept.values()]

    def shown(self, name: TableName) -> tuple[str, str, int] | None:
        """Return what tells apart the states of a dataset; None: statements read none.

        The first text changes with its base, the second one with its log. The number is when the
        base was made, in milliseconds since 1970.
        """
        kept = self._kept.get(name)
        version = kept.current.shown if kept is not None else None
        if version is None:
            return None
        log = version.read_log
        last = log[-1].chunk.checksum if log else ""
        base = "+".join(part.key for part in version.parts)
        return base, f"{len(log)}:{last}", int(version.made_at.timestamp() * 1000)

    def partitions(self) -> pa.Table:
        """Return the content of `runtime.partitions`."""
        shown = {name: kept.current for name, kept in self._kept.copy().items()}
        read = [
            (name, current.shown, current.table(current.shown))
            for name, current in shown.items()
            if current.shown is not None
        ]
        return partition_listing.table(read, self._dispatch.executors())

    def sources(self) -> PassthroughSources:
        """Return the datasets whose sources statements may use."""
        if self._sources is None:
            self._sources = self._found_sources()
        return self._sources

    def _found_sources(self) -> PassthroughSources:
        kept = self._kept.items()
        answering = frozenset(
            name for name, each in kept if each.acceleration.on_zero_results == "use_source"
        )
        written = {name: each for name, each in kept if each.dataset.access == "read_write"}
        logged = frozenset(name for name, each in written.items() if each.feed is not None)
        return PassthroughSources(frozenset(written) - logged, answering, logged)

    def changeable(self, name: TableName) -> Changeable:
        """Return a dataset that statements may change; raises as `target` does."""
        return self._changing(name).changeable()

    def early_entries(self, name: TableName, *, replaces: bool) -> EarlyEntries | None:
        """Return what stores an upload while it arrives, or None; raises as `target` does."""
        return self._changing(name).early_entries(replaces=replaces)

    async def refreshed(self, name: TableName) -> None:
        """Refresh a dataset and wait until it is read; raises as `Refresher.refreshed` does."""
        await self._accelerated(name).refresher.refreshed()

    def target(self, name: TableName) -> ChangeTarget:
        """Return the columns and keys that changes of a dataset are decoded for.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such accelerated dataset.
            ChangesRefusedError: it does not accept changes.
        """
        return self._changing(name).target()

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: SourcePositions | None = None,
        upon: BaseWithLog | None = None,
    ) -> int:
        """Apply changes to a dataset; raises as `target` and `Feed.apply` do."""
        kept = self._changing(name)
        assert kept.feed is not None
        if kept.columns is not None:
            await kept.columns.take_columns(changes.rows.schema, deadline_s)
        return await kept.feed.apply(changes, request_id, deadline_s, source, upon)

    async def position(self, name: TableName) -> str | None:
        """Return the position in the source of its changes; raises as `target` does."""
        feed = self._changing(name).feed
        assert feed is not None
        return feed.position

    def moved(self, name: TableName) -> None:
        """Note that readers of a dataset see another state."""
        self.catalog.moved()
        if name in self._kept:
            self._kept[name].moved()
        self._parents.moved(name)

    def _changing(self, name: TableName) -> Accelerated:
        kept = self._accelerated(name)
        if kept.feed is None:
            raise ChangesRefusedError(
                f"dataset '{name}' takes no changes: its refresh_mode is "
                f"'{kept.plan.settings.refresh_mode}'; it must be 'changes'"
            )
        return kept

    def _accelerated(self, name: TableName) -> Accelerated:
        kept = self._kept.get(name)
        if kept is None:
            raise missing.explained(self.catalog, name)
        return kept

    def damaged(self, name: TableName) -> None:
        """Repair a dataset whose stored rows cannot be read."""
        kept = self._kept.get(name)
        if kept is not None:
            kept.damaged()

    def _tell(self, name: TableName, refreshes: RefreshState, _stored: StoredSize) -> None:
        error = None
        if reason := refreshes.error or refreshes.damaged:
            about = f"dataset '{name}': "  # Most reasons say it by themselves.
            error = DatasetError("unavailable", f"{about}{reason.removeprefix(about)}")
        self.catalog.tell(name, status(refreshes), error)

    def _standing(self, kept: Accelerated) -> DatasetStanding:
        return standings.of(kept, self.catalog.datasets[kept.plan.name])
