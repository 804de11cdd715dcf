"""The catalogs of an executor's schedulers, one for each process life of a scheduler."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ShuttingDownError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.embedding import CatalogEmbedding, EmbedderSpec
from caraway_core.protocols.fleet import Pinned, TableCatalog
from caraway_core.statements import CatalogSnapshot
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.stores import Stores
from caraway_executor.tasks.host_files import HostFiles
from caraway_plugins.embeddings.loaded import LoadedEmbedders

SILENT_S = 60.0
"""A scheduler silent for this long is gone; its statements have failed or will fail."""
FORGOTTEN_S = 600.0
"""Schedulers ask each second. One silent for this long has ended, or will reinstall its catalog."""


@dataclass(slots=True)
class _Held:
    executor: LocalExecutor
    version: CatalogVersion
    touched_s: float


class Catalogs:
    """The installed catalogs, by origin.

    Tables in memory belong to the executor, not to an origin. A new catalog takes over those that
    other catalogs hold with the same name and initial rows. So the last catalog is never released,
    and inserted rows outlive the schedulers.

    `install` blocks and must run in a thread; call everything else from one event loop.
    """

    def __init__(
        self,
        settings: EngineSettings,
        clock: SecondsClock,
        files: HostFiles,
        room: TaskMemory | None = None,
        name: str = "",
    ) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._files = files
        self._stores = Stores()
        kept = room or TaskMemory(settings.memory_limit_bytes)
        self._chunks = KeptChunks(self._stores, kept, settings.chunks_directory)
        self._held: dict[str, _Held] = {}
        self._work: Counter[str] = Counter()
        self._installing = Lock()
        self._embedders = LoadedEmbedders()
        self._specs: dict[str, tuple[EmbedderSpec, ...]] = {}

    @property
    def versions(self) -> Mapping[str, CatalogVersion]:
        """The catalog version of each origin."""
        return {origin: held.version for origin, held in self._held.copy().items()}

    def install(self, catalog: TableCatalog) -> Mapping[TableName, str]:
        """Install a catalog; return why tables could not be installed, by name."""
        with self._installing:
            held = self._held.get(catalog.origin)
            executor = held.executor if held else self._made()
            others = [each.executor for each in self._held.values() if each is not held]
            here = self._files.localized(catalog)
            self._specs[catalog.origin] = catalog.embedders
            vectors = self._embedders.embedders_of(catalog.embedders)
            snapshot = CatalogSnapshot(
                catalog.version,
                _known(executor, here.tables),
                {},
                embedding=CatalogEmbedding(catalog.embedders, vectors),
            )
            failed = executor.prepare(snapshot, others)
            executor.publish()
            if catalog.pinned is not None:
                self._release(catalog.origin, executor, catalog.pinned)
            self._held[catalog.origin] = _Held(executor, catalog.version, self._clock())
            self._keep_models()
        return {**failed, **here.failed}

    @property
    def holds(self) -> tuple[TableName, ...]:
        """The accelerated datasets that have rows in memory."""
        held = self._held.copy().values()
        return tuple(sorted({name for each in held for name in each.executor.holds}))

    def executor(self, origin: str) -> LocalExecutor:
        """Return the executor for the catalog of an origin.

        Raises:
            ShuttingDownError: no catalog of that origin is installed.
        """
        held = self._held.get(origin)
        if held is None:
            raise ShuttingDownError("the executor has no catalog of this scheduler yet")
        return held.executor

    @property
    def executors(self) -> Mapping[str, LocalExecutor]:
        """The executors of all origins."""
        return {origin: held.executor for origin, held in self._held.copy().items()}

    def touch(self, origin: str, pinned: Pinned | None = None) -> None:
        """Record that the scheduler is alive, and release the versions that it does not need."""
        if held := self._held.get(origin):
            held.touched_s = self._clock()
            if pinned is not None:
                self._release(origin, held.executor, pinned)

    def _release(self, origin: str, executor: LocalExecutor, pinned: Pinned | None) -> None:
        executor.release(pinned)
        self._files.keep_only(origin, executor.kept)

    @contextmanager
    def at_work(self, origin: str) -> Iterator[None]:
        """Keep a catalog while work runs over it."""
        self._work[origin] += 1
        try:
            yield
        finally:
            self._work[origin] -= 1
            if not self._work[origin]:
                del self._work[origin]
            self.touch(origin)

    def forget_unused(self, busy: Container[str] = ()) -> None:
        """Release the catalogs of schedulers that were silent for long, except busy ones.

        Also releases rows that were not read recently and that other executors now read.
        """
        if not self._installing.acquire(blocking=False):
            return
        try:
            for held in self._held.values():
                held.executor.let_go()
            silent_s = self._clock() - SILENT_S
            for origin, held in self._held.items():
                if held.touched_s < silent_s and origin not in self._work and origin not in busy:
                    self._release(origin, held.executor, None)
            oldest_s = self._clock() - FORGOTTEN_S
            for origin, held in sorted(self._held.items(), key=lambda item: item[1].touched_s):
                is_busy = origin in self._work or origin in busy
                if held.touched_s < oldest_s and not is_busy and len(self._held) > 1:
                    del self._held[origin]
                    self._specs.pop(origin, None)
                    self._files.forget(origin)
                    held.executor.close()
        finally:
            self._installing.release()

    @property
    def embedded(self) -> Mapping[str, int]:
        """The texts that each embedding model was called with."""
        return self._embedders.texts

    def _keep_models(self) -> None:
        """Close embedding models that no scheduler names any more."""
        self._embedders.keep_only([spec for specs in self._specs.values() for spec in specs])

    def close(self) -> None:
        """Close all executors and release their chunks."""
        for held in self._held.values():
            held.executor.close()
        self._chunks.close()
        self._embedders.close()

    def _made(self) -> LocalExecutor:
        return LocalExecutor(self._settings, self._stores, self._chunks, self._name)


def _known(
    executor: LocalExecutor, tables: Mapping[TableName, TableSpec]
) -> Mapping[TableName, TableSpec]:
    """Return the tables, with unchanged ones replaced by the objects that are already here.

    Tables from another process are new objects each time, and only new objects are registered.
    """
    before = executor.session.snapshot.tables if executor.session is not None else {}
    return {
        name: before[name] if name in before and before[name] == spec else spec
        for name, spec in tables.items()
    }
