"""Drives the datasets from the manifest to what queries see, and keeps them there."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.manifest import Dataset, Manifest, SecretResolver, View
from caraway_core.manifest.acceleration import Acceleration
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.dispatch import CatalogSnapshot, Dispatch, SystemTable
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import FilesTable, StoredTable, TableSpec, ViewTable
from caraway_scheduler.catalog import backoff, changes, opening
from caraway_scheduler.catalog.states import DatasetState, ReadyState, Status, ViewState

logger = logging.getLogger(__name__)
Listener = Callable[[DatasetState], None]
_POLL_S: Mapping[str, float] = {"file": 1.0}
_POLL_REMOTE_S = 30.0
_POLLING_THREADS = 2
SOURCES = "caraway_source"
"""The schema in which the sources of accelerated datasets can be read themselves."""


class Accelerator(Protocol):
    """Keeps the rows of datasets close to the queries."""

    def begin(self, state: DatasetState, acceleration: Acceleration) -> None: ...

    def end(self, name: TableName) -> None: ...

    def source_loaded(self, name: TableName) -> None: ...


class Catalog:
    """The tables of one runtime. Used from one event loop; only sources run in threads."""

    def __init__(
        self,
        dispatch: Dispatch,
        cache_dir: Path,
        system: Mapping[TableName, SystemTable],
        parallelism: int,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.datasets: dict[TableName, DatasetState] = {}
        self.views: dict[TableName, ViewState] = {}
        self.version = CatalogVersion(0)
        self.moves = 0
        self.on_progress: Listener = lambda _state: None
        self.accelerator: Accelerator | None = None
        self._dispatch = dispatch
        self._cache_dir = cache_dir
        self._system = system
        self.on_change = on_change
        self._secrets: SecretResolver | None = None
        self._ready_state: ReadyState = "on_load"
        self._loading = ThreadPoolExecutor(parallelism, thread_name_prefix="loading")
        self._polling = ThreadPoolExecutor(_POLLING_THREADS, thread_name_prefix="polling")
        self._keepers: dict[TableName, asyncio.Task[None]] = {}
        self._installing = asyncio.Lock()
        self._installed: Mapping[TableName, TableSpec] = {}
        self._view_tables: dict[TableName, ViewTable] = {}
        self._settled: dict[TableName, asyncio.Event] = {}

    @property
    def state(self) -> CatalogVersion:
        """A number that grows with every change of what statements read."""
        return CatalogVersion(self.version + self.moves)

    @property
    def writable(self) -> frozenset[TableName]:
        """The tables that take rows: of an accelerated dataset that is its source."""
        return frozenset(
            source_of(name) if state.is_accelerated else name
            for name, state in self.datasets.items()
            if state.dataset.access == "read_write"
        )

    async def apply(self, manifest: Manifest, secrets: SecretResolver) -> changes.Changes:
        """Begin what is new, replace what differs, drop what is gone; returns at once.

        Old versions answer until their replacement is loaded.
        """
        self._secrets = secrets
        self._ready_state = manifest.runtime.ready_state
        wanted = changes.compare(self.datasets, manifest.datasets)
        views_changed = [state.view for state in self.views.values()] != list(manifest.views)
        for name in wanted.removed:
            self._drop(name)
        for dataset in (*wanted.added, *wanted.replaced):
            self._begin(dataset)
        if views_changed:
            self.views = {TableName(view.name): ViewState(view) for view in manifest.views}
        if wanted.removed or views_changed or self.version == 0:
            await self._install()
        return wanted

    async def show(self, name: TableName, version: StoredTable) -> None:
        """Let new statements read a version of an accelerated dataset, all of it at once."""
        state = self.datasets.get(name)
        if state is not None:
            state.version = version
            await self._install()

    def moved(self) -> None:
        """Take note that rows of an accelerated dataset are not those that they were."""
        self.moves += 1
        self.on_change()

    def source_schema(self, name: TableName) -> pa.Schema:
        """Return the schema of what an accelerated dataset is loaded from.

        Raises:
            DatasetError: its source is not known yet.
        """
        state = self.datasets.get(name)
        if state is None or state.spec is None:
            raise DatasetError("unavailable", f"dataset '{name}': its source is not loaded")
        # Only what looks at a time column asks for it, and a view has none.
        return pa.schema([]) if isinstance(state.spec, ViewTable) else state.spec.schema

    async def renew(self, name: TableName) -> None:
        """Look at the source of a dataset now: its columns may have changed since it was loaded.

        Raises:
            DatasetError: it cannot be read.
        """
        state = self.datasets.get(name)
        if state is None:
            return
        if state.source_error is not None:
            raise state.source_error
        source, request = self._source(state.dataset)
        found = await self._call(self._loading, source.fingerprint, request)
        if state.spec is not None and found == state.resolved:
            return
        state.spec = await self._call(self._loading, source.resolve, request)
        state.fingerprint = state.resolved = found
        await self._install()

    def params(self, dataset: Dataset) -> Mapping[str, str]:
        """Return the params of a dataset, with secrets filled in.

        Raises:
            CarawayError: a secret is missing.
        """
        assert self._secrets is not None
        return self._secrets.expand_all(dataset.params)

    def change_source(self, dataset: Dataset) -> ChangeSource | None:
        """Return what tells the changes of a dataset, if its connector does.

        Raises:
            DatasetError: the dataset's path or params are wrong.
        """
        assert self._secrets is not None
        return opening.change_source(dataset, self._secrets)

    def view_texts(self) -> Mapping[TableName, str]:
        """Return the queries of all views."""
        return {name: state.view.sql for name, state in self.views.items()}

    def source_bytes(self, name: TableName) -> int:
        """Return how large the source of an accelerated dataset is, as far as that is known."""
        state = self.datasets.get(name)
        spec = state.spec if state is not None else None
        return sum(scan.size_bytes for scan in spec.scans) if isinstance(spec, FilesTable) else 0

    def tell(self, name: TableName, status: Status, error: DatasetError | None) -> None:
        """Take note of how an accelerated dataset stands."""
        state = self.datasets.get(name)
        if state is not None:
            state.status = status
            state.error = error if status == "error" else None

    async def wait_settled(self) -> None:
        """Wait until every dataset has been tried once."""
        for event in list(self._settled.values()):
            await event.wait()

    async def aclose(self) -> None:
        for state in self.datasets.values():
            state.status = "shuttingdown"
        keepers = list(self._keepers.values())
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        self._loading.shutdown(wait=False, cancel_futures=True)
        self._polling.shutdown(wait=False, cancel_futures=True)

    def _begin(self, dataset: Dataset) -> None:
        name = TableName(dataset.name)
        if keeper := self._keepers.pop(name, None):
            keeper.cancel()
        old = self.datasets.get(name)
        state = DatasetState(
            dataset,
            ready_state=dataset.ready_state or self._ready_state,
            spec=old.spec if old else None,
            version=old.version if old else None,
        )
        self.datasets[name] = state
        if self.accelerator is not None:
            if dataset.acceleration is not None:
                self.accelerator.begin(state, dataset.acceleration)
            else:
                self.accelerator.end(name)
        settled = self._settled[name] = asyncio.Event()
        self._keepers[name] = asyncio.create_task(self._keep(state, settled), name=f"keep {name}")

    def _drop(self, name: TableName) -> None:
        self._keepers.pop(name).cancel()
        self.datasets.pop(name)
        if self.accelerator is not None:
            self.accelerator.end(name)
        self._settled.pop(name).set()

    async def _keep(self, state: DatasetState, settled: asyncio.Event) -> None:
        """Load a dataset, try again while it fails, and load it anew when its data changes."""
        while True:
            await self._load(state)
            settled.set()
            self.on_progress(state)
            if state.error is not None:
                await asyncio.sleep(backoff.delay_s(state.attempts, random.random()))
            elif not await self._wait_for_change(state):
                return

    async def _load(self, state: DatasetState) -> None:
        source, request = None, None
        try:
            source, request = self._source(state.dataset)
            state.fingerprint = await self._call(self._loading, source.fingerprint, request)
            spec: TableSpec = await self._call(self._loading, source.resolve, request)
        except DatasetError as exc:
            self._fail(state, exc)
            return
        state.spec, state.resolved, state.is_loaded = spec, state.fingerprint, True
        await self._install()
        if state.is_accelerated and self.accelerator is not None:
            self.accelerator.source_loaded(state.name)

    async def _wait_for_change(self, state: DatasetState) -> bool:
        """Return when the data is no longer what was loaded; False: it never will be."""
        if state.fingerprint is None:
            return False
        source, request = self._source(state.dataset)
        period_s = _POLL_S.get(state.dataset.connector, _POLL_REMOTE_S)
        while True:
            await asyncio.sleep(period_s)
            try:
                found = await self._call(self._polling, source.fingerprint, request)
            except DatasetError as exc:
                self._fail(state, exc)
                return True
            if found != state.fingerprint:
                return True

    def _source(self, dataset: Dataset) -> tuple[Source, SourceRequest]:
        assert self._secrets is not None
        return opening.source(dataset, self._secrets, self._cache_dir)

    def _fail(self, state: DatasetState, exc: DatasetError) -> None:
        state.attempts += 1
        if state.attempts == 1 or (state.error and state.error.message != exc.message):
            logger.warning(
                "dataset failed to load",
                extra={"dataset": state.name, "code": exc.code, "reason": exc.message},
            )
        if state.version is not None:
            return  # Its rows are there; a refresh says what is wrong with the source.
        state.status = "error"
        state.error = exc

    async def _install(self) -> None:
        """Make the tables that are known now the ones that new statements see."""
        async with self._installing:
            specs: dict[TableName, TableSpec] = {}
            for state in self.datasets.values():
                specs.update(_tables(state))
            views = dict(self.views)
            specs.update((name, self._view_table(state.view)) for name, state in views.items())
            if self.version and _same(specs, self._installed):
                return  # An installation that waited for another may find its work done.
            version = CatalogVersion(self.version + 1)
            failed = await self._dispatch.install(CatalogSnapshot(version, specs, self._system))
            self.version, self._installed = version, specs
            self._settle(specs, failed, views)
            self.on_change()

    def _settle(
        self,
        specs: Mapping[TableName, TableSpec],
        failed: Mapping[TableName, str],
        views: Mapping[TableName, ViewState],
    ) -> None:
        for name, state in self.datasets.items():
            state.source_error = None
            if failure := failed.get(name) or failed.get(source_of(name)):
                error = DatasetError("invalid", f"dataset '{name}': {failure}")
                state.source_error = error
                self._fail(state, error)
            elif state.is_accelerated:
                continue  # Its keeper tells.
            elif state.is_loaded and state.spec is specs.get(name):
                state.status, state.error, state.attempts = "ready", None, 0
        for name, view in views.items():
            view.error = (
                DatasetError("invalid", f"view '{name}': {failed[name]}")
                if name in failed
                else None
            )
            view.status = "error" if name in failed else "ready"

    def _view_table(self, view: View) -> ViewTable:
        name = TableName(view.name)
        known = self._view_tables.get(name)
        if known is None or known.sql != view.sql:
            known = self._view_tables[name] = ViewTable(view.sql)
        return known

    @staticmethod
    def _call(
        pool: ThreadPoolExecutor, function: Callable[[SourceRequest], Any], request: SourceRequest
    ) -> Awaitable[Any]:
        return asyncio.get_running_loop().run_in_executor(pool, _guarded, function, request)


def _guarded(function: Callable[[SourceRequest], Any], request: SourceRequest) -> Any:
    """Call a source; what it did not foresee becomes an error of the dataset, not a crash."""
    try:
        return function(request)
    except DatasetError:
        raise
    except Exception as exc:
        logger.exception("source failed unexpectedly", extra={"dataset": request.name})
        raise DatasetError(
            "invalid", f"dataset '{request.name}': {type(exc).__name__}: {exc}"
        ) from exc


def _tables(state: DatasetState) -> Mapping[TableName, TableSpec]:
    """Return the tables that a dataset is: itself, and the source of an accelerated one."""
    if not state.is_accelerated:
        return {} if state.spec is None else {state.name: state.spec}
    tables: dict[TableName, TableSpec] = {}
    if state.spec is not None:
        tables[source_of(state.name)] = state.spec
    if state.version is not None:
        tables[state.name] = state.version
    elif state.spec is not None and state.ready_state == "on_registration":
        tables[state.name] = state.spec
    return tables


def source_of(name: TableName) -> TableName:
    """Return under which name the source of an accelerated dataset is read."""
    return TableName(f"{SOURCES}.{name.replace('.', '__')}")


def _same(specs: Mapping[TableName, TableSpec], others: Mapping[TableName, TableSpec]) -> bool:
    """Compare by identity: a spec may hold a whole table, and loading anew makes a new one."""
    return specs.keys() == others.keys() and all(specs[name] is others[name] for name in specs)
