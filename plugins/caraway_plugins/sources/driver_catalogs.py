"""Catalogs that are databases behind drivers, which list their tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, NamedTuple

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.described_tables import quoted

OF_SYSTEM = frozenset({"information_schema", "pg_catalog", "sys"})


class DriverTable(NamedTuple):
    """A table that a driver lists: its schema, which may be empty, its name, and its kind."""

    schema: str
    name: str
    kind: str


class DriverCatalog(ABC):
    """The tables of a database. Each is read as a dataset with its name of three parts is."""

    own: ClassVar[str] = ""
    """The catalog that is meant where none is named; empty: the only one that has tables."""
    hidden: ClassVar[frozenset[str]] = OF_SYSTEM

    @abstractmethod
    def _source(self) -> Source:
        """Return the source of its tables."""

    @abstractmethod
    def _catalogs(self, request: SourceRequest) -> Iterable[tuple[str, list[DriverTable]]]:
        """Return the catalogs of the database, each with its tables.

        Raises:
            DatasetError: they cannot be listed.
        """

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        wanted = self._wanted(request)
        found = {
            catalog: [each for each in tables if self._is_shown(each)]
            for catalog, tables in self._catalogs(request.asked(""))
            if wanted in ("", catalog)
        }
        if wanted and not found:
            raise DatasetError("not_found", f"the server has no catalog '{wanted}'")
        used = sorted(each for each, tables in found.items() if tables)
        if len(used) > 1:
            raise DatasetError(
                "invalid",
                f"the server has tables in several catalogs, such as '{used[0]}' and '{used[1]}'; "
                f"name one: `from: {request.connector}:{used[0]}`",
            )
        for tables in found.values():
            for each in tables:
                listed = ListedTable(each.schema, each.name)
                if listed.title in request.described:
                    listed = replace(listed, mark=self._mark(request, listed))
                yield listed

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return self._source().resolve(self._asked(request, table))

    def _mark(self, request: CatalogRequest, table: ListedTable) -> str:
        try:
            return self._source().fingerprint(self._asked(request, table)) or ""
        except DatasetError as exc:
            return exc.message  # Statements that name it get the error when they describe it.

    def _is_shown(self, table: DriverTable) -> bool:
        """Return whether a table is one of users; without a schema, it has no name here."""
        is_hidden = table.schema.lower() in self.hidden or "SYSTEM" in table.kind
        return bool(table.schema) and not is_hidden

    def _wanted(self, request: CatalogRequest) -> str:
        return request.path.strip() or self.own

    def _asked(self, request: CatalogRequest, table: ListedTable) -> SourceRequest:
        parts = [self._wanted(request), table.schema, table.name]
        return request.asked(".".join(quoted(each) for each in parts if each), table)
