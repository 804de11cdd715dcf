"""Catalogs that are databases with a driver of ADBC: all tables and views that it lists."""

from collections.abc import Iterable

from caraway_core.protocols.sources import Source, SourceRequest
from caraway_plugins.sources.adbc.source import AdbcSource
from caraway_plugins.sources.driver_catalogs import DriverCatalog, DriverTable

_KINDS = ("TABLE", "VIEW")
_OTHERS = ("SYSTEM", "TOAST")


class AdbcCatalog(DriverCatalog):
    """The tables of a database. Each is read as a dataset `adbc:catalog.schema.table` is.

    A database without schemas, such as SQLite, has its catalogs for them, and no catalog to name.
    """

    def _source(self) -> Source:
        return AdbcSource()

    def _catalogs(self, request: SourceRequest) -> Iterable[tuple[str, list[DriverTable]]]:
        source = AdbcSource()
        login = source.login(request)
        found = source.catalogs(request, login)
        if any(each.schema for _, tables in found for each in tables):
            return found
        return [("", [each._replace(schema=name) for name, tables in found for each in tables])]

    def _is_shown(self, table: DriverTable) -> bool:
        # Some drivers list indexes and sequences, too.
        is_table = any(each in table.kind for each in _KINDS) or not table.kind
        is_other = any(each in table.kind for each in _OTHERS)
        return is_table and not is_other and super()._is_shown(table)
