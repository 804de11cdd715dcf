"""Seats: each holds one engine process with a catalog, and replaces it when it is lost."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import UnavailableError
from caraway_core.ids import TableName
from caraway_core.statements import CatalogSnapshot, ViewFacts
from caraway_core.tables import TableSpec
from caraway_executor.engines.causes import Cause, EngineLostError, NotBegunError
from caraway_executor.engines.kept_rows import KeptRows, ProcessRows
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess

logger = logging.getLogger(__name__)
_ATTEMPTS = 3
_MOST_RETIRED = 2
_DELAYS = Delays(0.5, 30.0, jitter=0.2)
Give = Literal["install", "prepare"]
Fork = Callable[[EngineOptions], Any]


@dataclass(frozen=True, slots=True)
class _Rest:
    """A process that does not respond, with the rows it was given, since a time."""

    process: EngineProcess
    given: ProcessRows
    since_s: float


class Seat:
    """A role for an engine process; `name` identifies it in logs and metrics.

    A seat that `is_disposable` has no state worth keeping. A seat that is not `is_shared` runs one
    statement at a time, which may keep it from answering.
    """

    def __init__(
        self,
        name: str,
        fork: Fork,
        options: EngineOptions,
        kept: KeptRows,
        *,
        is_disposable: bool = False,
        is_shared: bool = True,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        self.is_shared = is_shared
        self._kept = kept
        self._given = ProcessRows(kept)
        """The rows in memory that the seat's process was given."""
        self._resting: _Rest | None = None
        self.name = name
        self.is_disposable = is_disposable
        self.options = options
        self.views: Mapping[TableName, ViewFacts] = {}
        self.failed: Mapping[TableName, str] = {}
        self._fork = fork
        self._process: EngineProcess | None = None
        self.retired: list[EngineProcess] = []
        self._catalog: CatalogSnapshot | None = None
        self._prepared: CatalogSnapshot | None = None
        self._changing = asyncio.Lock()
        self._cooldown = Cooldown(_DELAYS, clock)
        self._fatal: CatalogSnapshot | None = None
        """The catalog whose failures `_cooldown` counts."""
        self._harmful: dict[TableName, tuple[TableSpec, str]] = {}
        """Views that ended an engine process while it planned them, with the error message."""

    @property
    def processes(self) -> list[EngineProcess]:
        """The process in the seat, a resting one, and those that are finishing their work."""
        resting = self._resting.process if self._resting is not None else None
        return [each for each in (self._process, resting, *self.retired) if each is not None]

    def note(self, catalog: CatalogSnapshot) -> None:
        """Set the catalog that the next statement sees."""
        self._catalog = catalog

    async def install(self, catalog: CatalogSnapshot) -> Mapping[TableName, str]:
        """Make a catalog visible to new statements; return why tables could not be built."""
        self._catalog = catalog
        await self._renewed()
        return self.failed

    async def prepare(
        self, catalog: CatalogSnapshot
    ) -> tuple[Mapping[TableName, str], Mapping[TableName, ViewFacts]]:
        """Register a catalog; statements see it after `publish`."""
        async with self._changing:
            self._check(catalog)
            for _ in range(_ATTEMPTS + len(catalog.tables)):
                process = await self._held()
                try:
                    await self._give(process, catalog, "prepare")
                except EngineLostError as exc:
                    self._blame(process, exc, catalog)
                    continue
                except NotBegunError:
                    # It ended or fell silent before it processed the catalog.
                    self.retire(process)
                    continue
                self._prepared = catalog
                self._cooldown.succeeded()
                return self.failed, self.views
            raise self._given_up(catalog)

    async def publish(self) -> CatalogSnapshot:
        """Make the last prepared catalog visible to new statements."""
        process, prepared = self._process, self._prepared
        assert prepared is not None
        self._catalog = prepared
        if process is not None and process.is_alive and process.prepared is prepared:
            try:
                await process.call("publish")
            except (EngineLostError, NotBegunError):
                pass
            else:
                process.installed = prepared
                if self._process is process:
                    return prepared
        await self._renewed()
        return prepared

    async def ready(self) -> EngineProcess:
        """Return the process with a catalog; start one first if there is none.

        Raises:
            UnavailableError: none can be started.
        """
        process = self._process
        if (
            process is not None
            and process.is_alive
            and process.installed is not None
            and self._given.is_newest
        ):
            return process
        return await self._renewed()

    async def newest(self) -> EngineProcess:
        """Return the process with the newest catalog, which is installed first if necessary."""
        process = self._process
        if process is not None and process.is_alive and not self._is_behind:
            return process
        return await self._renewed()

    async def idle(self) -> EngineProcess:
        """Return a process without work and with the newest catalog, for one statement alone.

        A statement that had this seat before may still run. Its process finishes it, unless there
        are too many such processes; then both run in one.
        """
        process = self._process
        if process is not None and process.works and len(self.retired) < _MOST_RETIRED:
            self.retire(process)
        return await self.newest()

    def retire(self, process: EngineProcess) -> None:
        """Let a process finish its work, and start another one for new work."""
        if process is not self._process:
            return
        logger.info("engine process retired", extra={"engine": self.name})
        self._process = None
        self.retired.append(process)
        while len(self.retired) > _MOST_RETIRED:
            self.retired[0].kill(Cause.HUNG)
            del self.retired[0]

    def vacate(self, process: EngineProcess) -> bool:
        """Record that a process is lost; return whether it was the seat's current process."""
        if process in self.retired:
            self.retired.remove(process)
        if self._resting is not None and self._resting.process is process:
            self._resting = None
        if process is not self._process:
            return False
        self._process = None
        return True

    def rest(self, process: EngineProcess, now_s: float) -> None:
        """Give a silent process no more statements until it answers, and start another one.

        The silent process is kept because its rows and plans are expensive to rebuild.
        """
        if process is not self._process or self.is_disposable or self._resting is not None:
            self.retire(process)
            return
        self._resting = _Rest(process, self._given, now_s)
        self._process = None

    def wake(self, process: EngineProcess, now_s: float, most_s: float) -> None:
        """Return a resting process to its seat once it answers.

        A process that rests for too long, or misses a newer catalog, is retired.
        """
        rest = self._resting
        if rest is None or rest.process is not process or self._changing.locked():
            return
        if not process.is_responsive and now_s - rest.since_s < most_s:
            return
        self._resting = None
        if process.is_responsive and self._is_newest(rest):
            process.is_silent = False
            if self._process is not None:
                self.retire(self._process)
            self._process = process
            self._given = rest.given
        else:
            self.retired.append(process)

    def _is_newest(self, rest: "_Rest") -> bool:
        process = rest.process
        return (
            process.is_alive
            and process.installed is self._catalog
            and process.prepared is self._catalog
            and rest.given.is_newest
        )

    async def _renewed(self) -> EngineProcess:
        """Start a process if there is none, and give it the catalog."""
        async with self._changing:
            self._check(self._catalog)
            for _ in range(_ATTEMPTS + len(self._catalog.tables if self._catalog else ())):
                process = await self._held()
                catalog = self._catalog
                if catalog is None or not self._is_behind:
                    return process
                try:
                    await self._give(process, catalog, "install")
                    process.installed = catalog
                except EngineLostError as exc:
                    self._blame(process, exc, catalog)
                    continue
                except NotBegunError:
                    # It ended or fell silent before it processed the catalog.
                    self.retire(process)
                    continue
                self._cooldown.succeeded()
                return process
            raise self._given_up(self._catalog)

    def _check(self, catalog: CatalogSnapshot | None) -> None:
        """Refuse a catalog that repeatedly ended new processes, until its cooldown is over.

        Raises:
            UnavailableError: the cooldown is not over.
        """
        if catalog is not self._fatal:
            self._cooldown.succeeded()
        elif wait_s := self._cooldown.left_s:
            raise _hopeless(wait_s)

    def _given_up(self, catalog: CatalogSnapshot | None) -> UnavailableError:
        self._fatal = catalog
        self._cooldown.failed()
        return _hopeless(self._cooldown.left_s)

    async def _held(self) -> EngineProcess:
        """Return the process; start one if there is none."""
        process = self._process
        if process is None or not process.is_alive:
            process = self._process = await self._fork(self.options)
            self._given = ProcessRows(self._kept)
        return process

    @property
    def _is_behind(self) -> bool:
        process = self._process
        if process is None or process.installed is not self._catalog:
            return True
        return not self._given.is_newest

    async def _give(self, process: EngineProcess, catalog: CatalogSnapshot, method: Give) -> None:
        harmful = {
            name: (spec, message)
            for name, (spec, message) in self._harmful.items()
            if catalog.tables.get(name) is spec
        }
        self._harmful = harmful
        tables = {name: spec for name, spec in catalog.tables.items() if name not in harmful}
        tables.update(self._given.give(tables))
        process.on_kept = self._given.keep
        failed, views = await process.give(method, replace(catalog, tables=tables))
        process.prepared = catalog
        self.views = views
        self.failed = {**failed, **{name: message for name, (_, message) in harmful.items()}}

    def _blame(
        self, process: EngineProcess, lost: EngineLostError, catalog: CatalogSnapshot
    ) -> None:
        """Exclude the view that was being planned when the engine ended, if there was one."""
        name = process.registering
        spec = catalog.tables.get(name) if name is not None else None
        if self._process is process:
            self._process = None
        if name is None or spec is None or spec.query is None:
            return
        message = f"view '{name}' cannot be used: {lost.told(wrote=False).message}"
        logger.error(
            "a view ended the engine process", extra={"view": name, "cause": lost.cause.value}
        )
        self._harmful[name] = spec, message


def _hopeless(wait_s: float) -> UnavailableError:
    text = "the engine ends whenever it loads the catalog; try again"
    return UnavailableError(text, 2 + math.ceil(wait_s))
