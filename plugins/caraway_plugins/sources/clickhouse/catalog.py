"""Catalogs that are servers of ClickHouse: their databases are the schemas."""

from collections.abc import Iterator

from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources import database_files
from caraway_plugins.sources.clickhouse import source
from caraway_plugins.sources.clickhouse.source import ClickhouseSource

# Materialized views keep their rows in tables with names of their own.
_MARKS = """
SELECT database, table, toString(cityHash64(arraySort(groupArray((position, name, type))))) AS mark
FROM system.columns WHERE {} AND NOT startsWith(table, '.inner')
GROUP BY database, table ORDER BY database, table
"""
_ALL = "database NOT IN ('', 'system', 'information_schema', 'INFORMATION_SCHEMA')"


class ClickhouseCatalog:
    """The tables of a server. Each is read as a dataset `clickhouse:database.table` is."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        with source.connected(_asked(request)) as (login, rows):
            chosen = f"database = {source.text(login['db'])}" if login["db"] else _ALL
            marks = rows(_MARKS.format(chosen))
        for row in marks:
            yield ListedTable(row["database"], row["table"], row["mark"])

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return ClickhouseSource().resolve(_asked(request, table))


def _asked(request: CatalogRequest, table: ListedTable | None = None) -> SourceRequest:
    return database_files.of_server(request, "clickhouse_db", table)
