"""Determines which datasets a statement must read at their newest version, and waits for them.

Other schedulers change datasets too. A statement that may read such a dataset first reads its
revision from the state store; see `freshness`. An answer is cached only if no other scheduler can
write to its tables.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from caraway_acceleration.accelerated import Accelerated
from caraway_core.ids import CatalogVersion, TableName
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import ViewState
from caraway_scheduler.coordination.freshness import Freshness, Mentions, Read

Texts = Mapping[TableName, str]
NO_TEXTS: Texts = MappingProxyType({})


class ReadingFunctions(Protocol):
    """The functions of the manifest that read tables."""

    @property
    def texts(self) -> Texts:
        """Their bodies, by name; another mapping once one of them has changed."""
        ...


class NewestVersions:
    """The present accelerated datasets, as statements may name them."""

    def __init__(
        self,
        catalog: Catalog,
        kept: Mapping[TableName, Accelerated],
        read: Read,
        functions: ReadingFunctions | None = None,
    ) -> None:
        """Create it over `kept`, a mapping that changes as datasets are added and removed."""
        self._catalog = catalog
        self._kept = kept
        self._functions = functions
        self._freshness = Freshness(read, self._reach)
        self._mentions: tuple[object, object, Mentions] | None = None
        self._written: tuple[CatalogVersion, object, Mentions] | None = None

    def mentioned(self, sql: str) -> frozenset[TableName]:
        """Return the datasets whose newest version a statement must read."""
        if not self._kept:
            return frozenset()
        views, functions, known = self._catalog.views, self._read_by_functions(), self._mentions
        if known is None or known[0] is not views or known[1] is not functions:
            texts = {**_texts(views), **functions}
            known = self._mentions = views, functions, Mentions(self._kept, texts)
        return known[2].tables_of(sql)

    def _read_by_functions(self) -> Texts:
        return self._functions.texts if self._functions is not None else NO_TEXTS

    def changed(self) -> None:
        """Note that the accelerated datasets have changed."""
        self._mentions = None

    def may_keep(self, sql: str) -> bool:
        """Return whether an answer may be cached.

        Writes of other schedulers to tables that are not accelerated leave no trace.
        """
        catalog, functions, known = self._catalog, self._read_by_functions(), self._written
        if known is None or known[0] != catalog.version or known[1] is not functions:
            plain = catalog.writable & catalog.datasets.keys() - self._kept.keys()
            texts = {**_texts(catalog.views), **functions}
            known = self._written = catalog.version, functions, Mentions(plain, texts)
        return not known[2].tables_of(sql)

    async def caught_up(self, sql: str) -> None:
        """Wait until a statement would read everything that any scheduler has acknowledged.

        Raises:
            UnavailableError: the state store or the readers of a dataset are not ready in time.
        """
        if names := self.mentioned(sql):
            await self._freshness.reach(names)

    async def aclose(self) -> None:
        """Stop the running calls."""
        await self._freshness.aclose()

    async def _reach(self, name: TableName, revision: int) -> None:
        # A dataset that has ended shows nothing, so wait for its successor.
        while revision and (kept := self._kept.get(name)) is not None:
            await kept.reach(revision)
            if self._kept.get(name) is kept:
                return


def _texts(views: Mapping[TableName, ViewState]) -> Texts:
    return {name: state.view.sql for name, state in views.items()}
