"""The state of a source catalog: the names of its tables, and the tables that are in use."""

import asyncio
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import DeclaredCatalog
from caraway_core.manifest.texts import names
from caraway_core.protocols.catalog_sources import ListedTable
from caraway_core.tables import TableSpec
from caraway_scheduler.catalog.states import Status

logger = logging.getLogger(__name__)
MOST_DESCRIBED = 1_000


@dataclass(slots=True)
class SourceCatalogState:
    """The state of a catalog of the manifest. `listed` and `described` are by full names."""

    declared: DeclaredCatalog
    status: Status = "initializing"
    error: DatasetError | None = None
    listed: dict[TableName, ListedTable] = field(default_factory=dict)
    described: dict[TableName, TableSpec] = field(default_factory=dict)
    kept: frozenset[TableName] = frozenset()
    """The tables that views name; they stay described."""
    unnamed: int = 0
    """The number of tables that are left out, because statements cannot name them."""
    fingerprint: str | None = None
    asked_s: float = -math.inf
    """When it was last listed for an unknown name."""
    attempts: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first list succeeded or failed."""
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to have it listed now."""
    listing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _describing: "WeakValueDictionary[TableName, asyncio.Lock]" = field(
        default_factory=WeakValueDictionary
    )

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def titles(self) -> frozenset[str]:
        """The tables that are described, without the name of the catalog."""
        return frozenset(self.listed[name].title for name in self.described if name in self.listed)

    def take_list(self, found: Iterable[ListedTable], fingerprint: str | None) -> bool:
        """Take a new list. Returns whether tables left that were described."""
        listed: dict[TableName, ListedTable] = {}
        unnamed = 0
        for each in found:
            if not names.is_writable(each.schema) or not names.is_writable(each.name):
                unnamed += 1
            elif self.declared.includes(each.title):
                listed[TableName(f"{self.name}.{each.title}")] = each
        if unnamed and unnamed != self.unnamed:
            logger.warning(
                "tables of a catalog are left out: their names have a dot, a slash or a quote",
                extra={"catalog": self.name, "tables": unnamed},
            )
        gone = [name for name in self.described if listed.get(name) != self.listed.get(name)]
        for name in gone:
            del self.described[name]
        self.listed, self.fingerprint, self.unnamed = listed, fingerprint, unnamed
        self.succeed()
        return bool(gone)

    def succeed(self) -> None:
        """Note that its list is the current one."""
        self.status, self.error, self.attempts = "ready", None, 0

    def fail(self, exc: DatasetError) -> None:
        """Note that it could not be listed. Its last list stays."""
        self.attempts += 1
        message = f"catalog '{self.name}': {exc.message}"
        if self.error is None or self.error.message != message:
            logger.warning(
                "catalog failed to load",
                exc_info=exc.__cause__ if exc.type == "invalid" else None,
                extra={"catalog": self.name, "reason": exc.message},
            )
        self.status, self.error = "error", DatasetError(exc.type, message)

    def describe(self, name: TableName, spec: TableSpec) -> None:
        """Add a described table. If there are too many, the first one goes."""
        self.described[name] = spec
        if len(self.described) > MOST_DESCRIBED:
            first = next((each for each in self.described if each not in self.kept), name)
            del self.described[first]

    def describing(self, name: TableName) -> asyncio.Lock:
        """Return the lock of who describes a table."""
        lock = self._describing.get(name)
        if lock is None:
            lock = self._describing[name] = asyncio.Lock()
        return lock
