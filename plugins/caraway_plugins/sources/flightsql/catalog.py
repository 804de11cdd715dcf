"""Catalogs that are Flight SQL servers: all tables that they list in their metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.described_tables import quoted
from caraway_plugins.sources.flightsql import source
from caraway_plugins.sources.flightsql.source import FlightSqlSource

_OF_SYSTEM = frozenset({"information_schema", "pg_catalog", "sys"})
_OF_RUNTIME = frozenset({"runtime"})


class FlightSqlCatalog:
    """The tables of a server. Each is read as a dataset `flightsql:catalog.schema.table` is."""

    own = ""
    """The catalog that is meant where none is named; empty: the only one that has tables."""
    hidden = _OF_SYSTEM

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        wanted = self._wanted(request)
        found = {}
        asked = _asked(request, "")
        login = source.login_of(asked)
        with source.opened(asked, login, "the server does not list its tables") as connection:
            for catalog, tables in connection.catalogs():
                if wanted in ("", catalog):
                    found[catalog] = [each for each in tables if self._is_shown(*each)]
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
            for schema, name, _kind in tables:
                listed = ListedTable(schema, name)
                if listed.title in request.described:
                    listed = replace(listed, mark=self._mark(request, listed))
                yield listed

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return FlightSqlSource().resolve(self._asked(request, table))

    def _mark(self, request: CatalogRequest, table: ListedTable) -> str:
        try:
            return FlightSqlSource().fingerprint(self._asked(request, table)) or ""
        except DatasetError as exc:
            return exc.message  # Statements that name it get the error when they describe it.

    def _is_shown(self, schema: str, _name: str, kind: str) -> bool:
        """Return whether a table is one of users; without a schema, it has no name here."""
        return bool(schema) and schema.lower() not in self.hidden and "SYSTEM" not in kind.upper()

    def _wanted(self, request: CatalogRequest) -> str:
        return request.path.strip() or self.own

    def _asked(self, request: CatalogRequest, table: ListedTable) -> SourceRequest:
        parts = [self._wanted(request), table.schema, table.name]
        return _asked(request, ".".join(quoted(each) for each in parts if each), table)


class CarawayCatalog(FlightSqlCatalog):
    """The datasets and views of another runtime, or the tables of one of its catalogs."""

    own = "caraway"
    hidden = _OF_SYSTEM | _OF_RUNTIME


def _asked(request: CatalogRequest, path: str, table: ListedTable | None = None) -> SourceRequest:
    return SourceRequest(
        name=TableName(f"{request.name}.{table.title}" if table else request.name),
        connector=request.connector,
        path=path,
        params=request.params,
        declared=(),
        access="read",
        base_dir=request.base_dir,
        cache_dir=request.cache_dir,
    )
