"""Catalogs that are SQLite files: all tables and views of a file, in the schema `main`."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.sources import database_files
from caraway_plugins.sources.sqlite import source

_TABLES = """
SELECT l.name, l.type, s.sql FROM pragma_table_list l JOIN sqlite_schema s ON s.name = l.name
WHERE l.schema = 'main' AND l.type IN ('table', 'view', 'virtual') AND l.name NOT GLOB 'sqlite_*'
ORDER BY l.name
"""


class SqliteCatalog:
    """The tables of a file. Each is read as a dataset `sqlite:table` is."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        asked = _asked(request)
        with source.opened(asked, "sqlite_schema") as cursor:
            cursor.execute("PRAGMA schema_version")
            version = cursor.fetchone()[0]
            cursor.execute(_TABLES)
            for name, kind, sql in cursor.fetchall():
                # The columns of a view are those of its tables.
                text = f"{version}" if kind == "view" else sql or ""
                mark = hashlib.sha256(text.encode()).hexdigest()[:16]
                yield ListedTable("main", name, mark)

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return source.SqliteSource().fingerprint(_asked(request))

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return source.SqliteSource().resolve(_asked(request, table))

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        if table.schema != "main":
            raise DatasetError("invalid", "a SQLite file has the schema 'main' alone")
        remote_table = database_files.place(_asked(request, table), "sqlite_file", table)
        return replace(remote_table, relation=(table.name,))


def _asked(request: CatalogRequest, table: ListedTable | None = None) -> SourceRequest:
    return database_files.of_catalog(request, "sqlite_file", table)
