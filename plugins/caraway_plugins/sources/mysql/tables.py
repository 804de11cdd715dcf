"""Catalogs that are servers of MySQL or MariaDB: their databases are the schemas."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.sources import database_files
from caraway_plugins.sources.mysql import describing, unfinished
from caraway_plugins.sources.mysql.source import MysqlSource

# Names are compared by their bytes: those of two tables may differ in capitals alone.
_CHOSEN = """
table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
  AND (DATABASE() IS NULL OR CAST(table_schema AS BINARY) = CAST(DATABASE() AS BINARY))
"""
_KINDS = f"""
SELECT table_schema, table_name FROM information_schema.tables
WHERE {_CHOSEN} AND table_type IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED')
"""
_MARKS = f"""
SELECT table_schema, table_name, md5(group_concat(
    concat_ws(' ', column_name, column_type, collation_name) ORDER BY ordinal_position
))
FROM information_schema.columns
WHERE {_CHOSEN} AND find_in_set('select', privileges)
GROUP BY CAST(table_schema AS BINARY), CAST(table_name AS BINARY)
ORDER BY CAST(table_schema AS BINARY), CAST(table_name AS BINARY)
"""
_WHOLE_MARKS = "SET SESSION group_concat_max_len = 16777216"


class MysqlCatalog:
    """The tables of a server. Each is read as a dataset `mysql:database.table` is."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        asked = _asked(request)
        with describing.opened(asked, needs_database=False) as (_login, run):
            run(_WHOLE_MARKS)
            kinds = set(run(_KINDS))
            marks = run(_MARKS)
        for schema, name, mark in marks:
            if (schema, name) in kinds and not unfinished.is_unfinished(name):
                yield ListedTable(schema, name, mark)

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        asked = _asked(request, table)
        params = {**asked.params, "mysql_db": table.schema}
        return MysqlSource().resolve(replace(asked, params=params))

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        # Here: the client may not be installed.
        from caraway_plugins.sources.mysql import connecting

        login = connecting.login(_asked(request, table), needs_database=False)
        return RemoteTable(pa.schema([]), "mysql", (table.schema, table.name), (), login)


def _asked(request: CatalogRequest, table: ListedTable | None = None) -> SourceRequest:
    return database_files.of_server(request, "mysql_db", table)
