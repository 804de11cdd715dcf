"""Catalogs that are DuckDB files: all tables and views of a file."""

from collections.abc import Iterator

from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.sources import database_files
from caraway_plugins.sources.duckdb import source

_TABLES = """
SELECT schema_name, table_name,
       md5(string_agg(concat_ws(' ', column_name, data_type), ',' ORDER BY column_index))
FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal
GROUP BY schema_name, table_name ORDER BY schema_name, table_name
"""
_SOME = 10_000


class DuckdbCatalog:
    """The tables of a file. Each is read as a dataset `duckdb:schema.table` is."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        asked = _asked(request)
        with source.opened(asked) as connection:
            found = connection.execute(_TABLES)
            while rows := found.fetchmany(_SOME):
                for schema, name, mark in rows:
                    yield ListedTable(schema, name, mark)

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return source.DuckdbSource().fingerprint(_asked(request))

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return source.DuckdbSource().resolve(_asked(request, table))

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        return database_files.place(_asked(request, table), "duckdb_open", table)


def _asked(request: CatalogRequest, table: ListedTable | None = None) -> SourceRequest:
    return database_files.of_catalog(request, "duckdb_open", table)
