"""Calls the sources of catalogs in threads, as `asking` does those of datasets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar, cast

from caraway_core.errors import CarawayError, DatasetError
from caraway_core.loading import registry
from caraway_core.manifest import DeclaredCatalog
from caraway_core.protocols.catalog_sources import (
    CatalogRequest,
    CatalogSource,
    CreatingCatalogSource,
    ListedTable,
)
from caraway_core.tables import RemoteTable, TableSpec
from caraway_scheduler.catalog.asking import SourceCalls

MOST_TABLES = 100_000
_Result = TypeVar("_Result")


class CatalogCalls:
    """Calls the sources of catalogs, in the threads that call those of datasets."""

    def __init__(self, calls: SourceCalls) -> None:
        self._calls = calls

    async def _call(
        self,
        function: Callable[[CatalogRequest], _Result],
        request: CatalogRequest,
        *,
        polling: bool = False,
    ) -> _Result:
        try:
            return await self._calls.call(function, request, polling=polling)
        except DatasetError as exc:
            # Sources name the dataset that they are asked for, and here it is none.
            exc.message = exc.message.removeprefix(f"dataset '{request.name}': ")
            exc.args = (exc.message,)
            raise

    async def fingerprint(self, declared: DeclaredCatalog) -> str | None:
        """Return a text that changes when there may be other tables; None: unknown.

        Raises:
            DatasetError: the source cannot be read.
        """
        source, request = self._source(declared)
        return await self._call(source.fingerprint, request, polling=True)

    async def tables(
        self, declared: DeclaredCatalog, described: frozenset[str] = frozenset()
    ) -> Sequence[ListedTable]:
        """Return the tables that are included, with the marks of those that are described.

        Raises:
            DatasetError: the source cannot be read, or there are too many tables.
        """
        source, request = self._source(declared)
        request = replace(request, described=described)

        def listed(asked: CatalogRequest) -> Sequence[ListedTable]:
            included = (each for each in source.tables(asked) if declared.includes(each.title))
            tables = list(islice(included, MOST_TABLES + 1))
            if len(tables) > MOST_TABLES:
                raise DatasetError(
                    "invalid", f"it has more than {MOST_TABLES:,} tables; name some in 'include'"
                )
            return tables

        return await self._call(listed, request, polling=True)

    async def resolve(self, declared: DeclaredCatalog, table: ListedTable) -> TableSpec:
        """Return the table spec of a listed table.

        Raises:
            DatasetError: it cannot be read.
        """
        source, request = self._source(declared)
        return await self._call(lambda asked: source.resolve(asked, table), request)

    async def place(self, declared: DeclaredCatalog, table: ListedTable) -> RemoteTable:
        """Return where a table is or will be, of a catalog in which tables are created.

        Raises:
            DatasetError: there can be no such table.
        """
        source, request = self._source(declared)
        creating = cast("CreatingCatalogSource", source)
        return await self._call(lambda asked: creating.place(asked, table), request)

    def _source(self, declared: DeclaredCatalog) -> tuple[CatalogSource, CatalogRequest]:
        try:
            source: CatalogSource = registry.CATALOG_SOURCES.load(declared.connector)()
            request = CatalogRequest(
                declared.name,
                declared.connector,
                self._calls.resolver.expand(declared.path),
                self._calls.resolver.expand_all(declared.params),
                declared.base_dir,
                self._calls.cache_dir,
                access="read" if declared.access == "read" else "read_write",
            )
        except CarawayError as exc:
            raise DatasetError("unsupported", exc.message) from exc
        return source, request
