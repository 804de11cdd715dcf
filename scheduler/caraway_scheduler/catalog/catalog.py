"""Loads the datasets of the manifest, makes them visible to statements and keeps them current."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from caraway_core.concurrency import backoff, tasks
from caraway_core.errors import DatasetError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.loading import registry
from caraway_core.manifest import Dataset, Manifest, SecretResolver, View
from caraway_core.manifest.values.values import VIEW
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import SystemTable, ViewFacts
from caraway_core.tables import StoredTable, TableSpec, ViewTable
from caraway_scheduler.catalog import changes, polling, settling
from caraway_scheduler.catalog.asking import SourceCalls
from caraway_scheduler.catalog.catalog_calls import CatalogCalls
from caraway_scheduler.catalog.installing import CatalogEmbedders, Installer
from caraway_scheduler.catalog.judging import Judge
from caraway_scheduler.catalog.settling import Accelerator, Settling
from caraway_scheduler.catalog.source_catalogs import SourceCatalogs
from caraway_scheduler.catalog.states import (
    DatasetState,
    ReadyState,
    Status,
    ViewState,
    source_of,
    tables_of,
)

Listener = Callable[[DatasetState], None]
_INSTALL = "install the catalog"
_DELAYS = backoff.USUAL


class Catalog:
    """The tables of one runtime. One event loop uses it; only sources run in threads."""

    def __init__(
        self,
        dispatch: Dispatch,
        cache_dir: Path,
        system: Mapping[TableName, SystemTable],
        parallelism: int,
        accelerator: Accelerator,
        on_change: Callable[[], None] = lambda: None,
        embedders: CatalogEmbedders | None = None,
    ) -> None:
        self.datasets: dict[TableName, DatasetState] = {}
        self.moves = 0
        self.on_progress: Listener = lambda _state: None
        self.on_installed: Callable[[], None] = lambda: None
        self._installer = Installer(dispatch, system, embedders)
        self._asking = SourceCalls(cache_dir, parallelism)
        self._accelerator = accelerator
        self._settling = Settling(self.datasets, self._installer, accelerator, self)
        self._on_change = on_change
        self._ready_state: ReadyState = "on_load"
        self._tasks = tasks.Tasks()
        self._loading: dict[TableName, asyncio.Task[None]] = {}
        self._views: dict[TableName, View] = {}
        self._view_tables: dict[TableName, ViewTable] = {}
        self._settled: dict[TableName, asyncio.Event] = {}
        self.source_catalogs = SourceCatalogs(
            CatalogCalls(self._asking),
            self._tasks,
            self,
        )

    @property
    def version(self) -> CatalogVersion:
        """The version of the snapshot that new statements use; 0 before the first."""
        return self._installer.version

    @property
    def failures(self) -> Mapping[TableName, str]:
        """Why tables could not be installed."""
        return self._installer.planned.failed

    @property
    def views(self) -> Mapping[TableName, ViewState]:
        """The views of the manifest with their current states."""
        judge = self.judge()
        return {name: judge.state(view) for name, view in self._views.items()}

    @property
    def planned(self) -> Mapping[TableName, ViewFacts]:
        """What the plans of views read, also of datasets over other ones."""
        return self._installer.planned.views

    @property
    def state(self) -> CatalogVersion:
        """A number that increases with every change of the data that statements read."""
        return CatalogVersion(self.version + self.moves)

    @property
    def writable(self) -> frozenset[TableName]:
        """The tables that accept writes; for an accelerated dataset, its source.

        Of a source catalog, all of its tables do, or none.
        """
        datasets = (
            source_of(name) if state.is_accelerated else name
            for name, state in self.datasets.items()
            if state.dataset.access == "read_write"
        )
        return frozenset(datasets) | self.source_catalogs.writable

    async def apply(self, manifest: Manifest, secrets: SecretResolver) -> changes.CatalogChanges:
        """Apply a new manifest: start, replace and drop datasets; returns without waiting for
        loads.

        A replaced dataset serves its old version until the new one is loaded.
        """
        self._asking.secrets = secrets
        has_new_models = self._installer.apply_models(manifest, secrets)
        self._ready_state = manifest.runtime.ready_state
        catalog_changes = changes.compare(self.datasets, manifest.datasets)
        views_changed = list(self._views.values()) != list(manifest.views)
        for name in catalog_changes.removed:
            self._drop(name)
        for dataset in (*catalog_changes.added, *catalog_changes.replaced):
            self._begin(dataset)
        if views_changed:
            self._views = {TableName(view.name): view for view in manifest.views}
        have_left = self.source_catalogs.apply(manifest.catalogs, _queries(manifest))
        if (
            catalog_changes.removed
            or views_changed
            or have_left
            or has_new_models
            or self.version == 0
        ):
            await self._install_at_last()
        return catalog_changes

    async def show(self, name: TableName, version: StoredTable) -> None:
        """Let new statements read a version of an accelerated dataset."""
        state = self.datasets.get(name)
        if state is not None:
            state.version = version
            await self.install()

    def moved(self) -> None:
        """Record that rows of an accelerated dataset changed."""
        self.moves += 1
        self._on_change()

    def source_schema(self, name: TableName) -> pa.Schema:
        """Return the schema of the source of an accelerated dataset.

        Raises:
            DatasetError: the source is not loaded yet.
        """
        state = self.datasets.get(name)
        if state is None or state.spec is None:
            raise DatasetError("unavailable", f"dataset '{name}': its source is not loaded")
        # Only code that handles a time column needs the schema, and a view has no time column.
        return state.spec.schema

    def table_at_source(self, name: TableName) -> TableSpec | None:
        """Return a table as it was last found at its source, if it was."""
        if (state := self.datasets.get(name)) is not None:
            return state.spec
        return self.source_catalogs.described(name)

    async def renew(self, name: TableName) -> None:
        """Check the source of a dataset, or a table of a catalog, now: it may have changed.

        Raises:
            DatasetError: the source cannot be read.
        """
        if (state := self.datasets.get(name)) is None:
            await self.source_catalogs.describe_again(name)
            return
        if state.source_error is not None:
            raise state.source_error
        fingerprint = await self._asking.fingerprint(state.dataset)
        if state.spec is not None and fingerprint == state.resolved:
            return
        state.spec = await self._asking.resolve(state.dataset)
        state.fingerprint = state.resolved = fingerprint
        await self.install()

    def params(self, dataset: Dataset) -> Mapping[str, str]:
        """Return the params of a dataset; see `SourceCalls.params`."""
        return self._asking.params(dataset)

    def change_source(
        self, dataset: Dataset, learned: Callable[[], pa.Schema | None]
    ) -> ChangeSource | None:
        """Return the source of a dataset's changes; see `SourceCalls.change_source`."""
        return self._asking.change_source(dataset, learned)

    def source_bytes(self, name: TableName) -> int:
        """Return the size in bytes of the source of an accelerated dataset; 0 if it is unknown."""
        state = self.datasets.get(name)
        spec = state.spec if state is not None else None
        return spec.size_bytes if spec is not None else 0

    def tell(self, name: TableName, status: Status, error: DatasetError | None) -> None:
        """Set the status of an accelerated dataset."""
        state = self.datasets.get(name)
        if state is None:
            return
        state.is_recalled = True
        if status == "initializing" and state.lacks_source:
            return
        state.status = status
        state.error = error if status == "error" else None

    async def wait_settled(self) -> None:
        """Wait until the first load of every dataset and catalog succeeded or failed."""
        of_catalogs = (state.settled for state in self.source_catalogs.states.values())
        for event in (*self._settled.values(), *of_catalogs):
            await event.wait()

    async def aclose(self) -> None:
        """Stop all loads, and close the sources."""
        for state in self.datasets.values():
            state.status = "shuttingdown"
        self.source_catalogs.stop()
        await self._tasks.aclose()
        self._asking.close()

    def _begin(self, dataset: Dataset) -> None:
        name = TableName(dataset.name)
        if task := self._loading.pop(name, None):
            task.cancel()
        old = self.datasets.get(name)
        state = DatasetState(
            dataset,
            ready_state=dataset.ready_state or self._ready_state,
            spec=old.spec if old else None,
            version=old.version if old else None,
        )
        self.datasets[name] = state
        self._accelerate(state)
        if (before := self._settled.get(name)) is not None:
            before.set()  # A caller may wait for the task that was just cancelled.
        settled = self._settled[name] = asyncio.Event()
        self._loading[name] = self._tasks.keep(
            lambda: self._keep(state, settled), "keep a dataset", dataset=name
        )

    def _accelerate(self, state: DatasetState) -> None:
        """Have the accelerator take the dataset, or let go of it; a failure is tried again."""
        if state.is_kept:
            return
        try:
            if state.dataset.acceleration is not None:
                self._accelerator.accelerate_dataset(state, state.dataset.acceleration)
            else:
                self._accelerator.end(state.name)
        except BaseException as exc:  # noqa: BLE001 -- a source may raise anything
            settling.fail_unforeseen(state, "its acceleration", exc)
        else:
            state.is_kept = True

    def _drop(self, name: TableName) -> None:
        self._loading.pop(name).cancel()
        self.datasets.pop(name)
        self._settled.pop(name).set()
        try:
            self._accelerator.end(name)
        except Exception as exc:  # noqa: BLE001 -- a source may raise anything
            tasks.note(exc, "end an acceleration", fields={"dataset": name})

    async def _keep(self, state: DatasetState, settled: asyncio.Event) -> None:
        """Load a dataset, retry while that fails, and reload it when its data changes."""
        while True:
            try:
                is_loaded = await self._load(state)
            except BaseException as exc:  # noqa: BLE001 -- a source may raise anything
                is_loaded = False
                settling.fail_unforeseen(state, "its source", exc)
            finally:
                settled.set()
            self.on_progress(state)
            if is_loaded:
                await self._until_stale(state)
            else:
                await asyncio.sleep(_DELAYS.delay_s(state.attempts, random.random()))

    async def _load(self, state: DatasetState) -> bool:
        """Load a dataset from its source and install it; returns False if that failed."""
        self._accelerate(state)
        state.stale.clear()
        try:
            state.fingerprint = await self._asking.fingerprint(state.dataset)
            spec = await self._asking.resolve(state.dataset)
        except DatasetError as exc:
            settling.fail(state, exc)
            return False
        state.spec, state.resolved, state.is_loaded = spec, state.fingerprint, True
        try:
            await self.install()
        except BaseException as exc:  # noqa: BLE001 -- a source may raise anything
            settling.fail_unforeseen(state, "the catalog", exc)
            return False
        if state.is_accelerated:
            return state.is_kept and state.source_error is None
        return state.error is None

    async def _until_stale(self, state: DatasetState) -> None:
        """Return when the dataset's data has changed since it was loaded."""
        usual_s = registry.connector(state.dataset.connector).poll_s
        period_s = polling.period_s(usual_s)
        while not state.stale.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(None if state.fingerprint is None else period_s):
                    await state.stale.wait()
                    return
            began_s = time.monotonic()
            try:
                fingerprint = await self._asking.fingerprint(state.dataset, polling=True)
            except DatasetError as exc:
                settling.fail(state, exc)
                return
            except BaseException as exc:  # noqa: BLE001 -- a source may raise anything
                settling.fail_unforeseen(state, "its source", exc)
                return
            if fingerprint != state.fingerprint:
                return
            period_s = polling.period_s(usual_s, time.monotonic() - began_s)

    def failed_later(self, version: CatalogVersion, failed: Mapping[TableName, str]) -> None:
        """Record tables that failed on an executor after their catalog was served."""
        if version != self.version:
            return
        self._installer.failed_later(failed)
        self._settling.update()
        for name, state in self.datasets.items():
            if name in failed or source_of(name) in failed:
                state.stale.set()

    def judge(self) -> Judge:
        """Return what knows why a table cannot be read, for the tables as they are now."""
        catalogs = self.source_catalogs.states
        return Judge(self._installer.planned, self.datasets, self._views, catalogs)

    async def _install_at_last(self) -> None:
        """Install the known tables; a failure is retried in the background."""
        try:
            await self.install()
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            tasks.note(exc, _INSTALL)
            self._tasks.keep(self.install, _INSTALL)

    async def install(self) -> None:
        """Install the known tables, so that new statements use them."""
        if await self._installer.install(self._tables):
            self._settling.update()
            self._on_change()
            self.on_installed()

    def _tables(self) -> Mapping[TableName, TableSpec]:
        specs: dict[TableName, TableSpec] = {**self.source_catalogs.tables}
        for state in self.datasets.values():
            specs.update(tables_of(state))
        specs.update((name, self._view_table(view)) for name, view in self._views.items())
        return specs

    def _view_table(self, view: View) -> ViewTable:
        name = TableName(view.name)
        table = self._view_tables.get(name)
        if table is None or table.sql != view.sql:
            table = self._view_tables[name] = ViewTable(view.sql)
        return table


def _queries(manifest: Manifest) -> Iterator[str]:
    """Yield the SQL of all views, also of those that are accelerated."""
    yield from (view.sql for view in manifest.views)
    yield from (each.path for each in manifest.datasets if each.connector == VIEW)
