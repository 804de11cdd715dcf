"""Which accelerated datasets a statement must read at their newest, and how they are reached.

Other schedulers change datasets, too. A statement that may read one first asks the state store
how far it is, see `freshness`. An answer is kept only where nobody else writes to what it read.
"""

from collections.abc import Mapping

from caraway_core.ids import CatalogVersion, TableName
from caraway_scheduler.acceleration.accelerated import Accelerated
from caraway_scheduler.acceleration.versions.freshness import Freshness, Mentions, Read
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import ViewState


class NewestVersions:
    """The datasets that are kept now, as statements may name them."""

    def __init__(self, catalog: Catalog, kept: Mapping[TableName, Accelerated], read: Read) -> None:
        """Take the datasets that are `kept`, as they come and go."""
        self._catalog = catalog
        self._kept = kept
        self._freshness = Freshness(read, self._reach)
        self._mentions: tuple[object, Mentions] | None = None
        self._written: tuple[CatalogVersion, Mentions] | None = None

    def mentioned(self, sql: str) -> frozenset[TableName]:
        """Return the datasets of which a statement must read the newest version."""
        if not self._kept:
            return frozenset()
        views, known = self._catalog.views, self._mentions
        if known is None or known[0] is not views:
            known = self._mentions = views, Mentions(self._kept, _texts(views))
        return known[1].of(sql)

    def changed(self) -> None:
        """Other datasets are kept now."""
        self._mentions = None

    def may_keep(self, sql: str) -> bool:
        """Return whether an answer may be kept.

        What other schedulers write to tables that are not accelerated is not noted anywhere.
        """
        catalog = self._catalog
        if self._written is None or self._written[0] != catalog.version:
            plain = catalog.writable & catalog.datasets.keys() - self._kept.keys()
            self._written = catalog.version, Mentions(plain, _texts(catalog.views))
        return not self._written[1].of(sql)

    async def caught_up(self, sql: str) -> None:
        """Have a statement read all that was acknowledged before now, by any scheduler.

        Raises:
            UnavailableError: the state store does not answer in time.
        """
        if names := self.mentioned(sql):
            await self._freshness.reach(names)

    async def aclose(self) -> None:
        await self._freshness.aclose()

    async def _reach(self, name: TableName, revision: int) -> None:
        # One that has ended meanwhile shows nothing; then the next one is to be reached.
        while revision and (kept := self._kept.get(name)) is not None:
            await kept.reach(revision)
            if self._kept.get(name) is kept:
                return


def _texts(views: Mapping[TableName, ViewState]) -> Mapping[TableName, str]:
    return {name: state.view.sql for name, state in views.items()}
