"""Catalogs that are PostgreSQL databases: all tables and views that their user may read."""

from collections.abc import Iterator

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.changes.postgres import connecting
from caraway_plugins.sources.postgres.source import PostgresSource, login_of

_TABLES = """
SELECT n.nspname, c.relname, md5(string_agg(
    concat_ws(' ', a.attname, a.atttypid, a.atttypmod, a.attcollation), ',' ORDER BY a.attnum
))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
GROUP BY n.nspname, c.relname, c.oid
ORDER BY n.nspname, c.relname
"""
_SOME = 10_000


class PostgresCatalog:
    """The tables of a database. Each is read as a dataset `postgres:schema.table` is."""

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        place = _place(request)
        try:
            connection = connecting.connect(place)
            try:
                with connecting.mapped(place), connection.cursor() as cursor:
                    cursor.execute(_TABLES)
                    while rows := cursor.fetchmany(_SOME):
                        for schema, name, mark in rows:
                            yield ListedTable(schema, name, mark or "")
            finally:
                connecting.close(connection)
        except DatasetError as exc:
            # No table is meant.
            raise DatasetError(exc.type, exc.message.removeprefix(f"{place.title}: ")) from exc

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return PostgresSource().resolve(request.asked(table.title, table))

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        relation = (table.schema, table.name)
        login = login_of(_place(request).login)
        return RemoteTable(pa.schema([]), "postgres", relation, (), login)


def _place(request: CatalogRequest) -> connecting.ReplicatedTable:
    if request.path:
        raise DatasetError(
            "invalid",
            f"`from: {request.connector}` of a catalog takes no path; name the database in "
            "params.pg_db, and schemas and tables in 'include'",
        )
    any_table = "public.*"
    return connecting.place_of(
        ChangeRequest(TableName(request.name), request.connector, any_table, request.params)
    )
