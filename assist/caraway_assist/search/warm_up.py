"""Lets executors build the indexes of a dataset before its first search."""

import asyncio
import logging
from contextlib import suppress

from caraway_assist.search.searchable import SearchableTables
from caraway_assist.search.tables import Ranking, TableRanker, rankings
from caraway_assist.search.ways import RankingWays
from caraway_core.errors import CarawayError, CatalogMovedError
from caraway_core.ids import TableName
from caraway_core.manifest.values.search_columns import SearchColumns
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import ReadPoint
from caraway_scheduler.catalog.catalog import Catalog

logger = logging.getLogger(__name__)
_TRIES = 4


class SearchWarmUp:
    """Builds one index after another; statements answer the searches that come before.

    Later versions need none: executors index their new rows as they load them. If it fails, the
    first search builds the index.
    """

    def __init__(
        self, catalog: Catalog, dispatch: Dispatch, tables: SearchableTables, ranker: TableRanker
    ) -> None:
        self._catalog = catalog
        self._dispatch = dispatch
        self._tables = tables
        self._ways = RankingWays(ranker)
        self._done: dict[TableName, SearchColumns] = {}
        self._late: set[TableName] = set()
        """Those whose first search builds the index."""
        self._changed = asyncio.Event()

    def has_built(self, name: TableName) -> bool:
        """Return whether the search indexes of a dataset were built, and follow its rows."""
        return name in self._done and name not in self._late

    def changed(self) -> None:
        """Note that the catalog has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Build indexes of datasets that are loaded for the first time, until cancelled."""
        while True:
            self._changed.clear()
            for name, search in self._loaded().items():
                if self._done.get(name) != search and await self._build(name):
                    self._done[name] = search
            self._done = {name: self._done[name] for name in self._done.keys() & self._loaded()}
            await self._changed.wait()

    def _loaded(self) -> dict[TableName, SearchColumns]:
        return {
            name: state.dataset.search
            for name, state in self._catalog.datasets.items()
            if state.dataset.search and state.version is not None
        }

    async def _build(self, name: TableName) -> bool:
        """Build the indexes of a dataset; return False if statements do not read it yet."""
        indexes = []
        self._late.discard(name)
        try:
            for ranking in rankings(await self._tables.find(name)):
                if name in self._catalog.datasets:
                    indexes.append(await self._build_one(ranking))
        except CarawayError as exc:
            extra = {"dataset": name, "cause": exc.message}
            logger.info("the first search of a dataset builds its index", extra=extra)
            self._late.add(name)
            return True
        return "none" not in indexes

    async def _build_one(self, ranking: Ranking) -> str:
        """Build an index, and return its kind."""
        for _ in range(_TRIES - 1):
            with self._dispatch.reading() as at, suppress(CatalogMovedError):
                return (await self._ways.build(ranking, at)).index
        return (await self._ways.build(ranking, ReadPoint())).index
