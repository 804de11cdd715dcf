"""Catalogs that are databases with a driver of ODBC: all tables and views that their user may read.

The client has no call for the lists of drivers, so the database is asked in SQL.
"""

from collections.abc import Iterable

from caraway_core.protocols.sources import Source, SourceRequest
from caraway_plugins.sources.driver_catalogs import OF_SYSTEM, DriverCatalog, DriverTable
from caraway_plugins.sources.odbc import source
from caraway_plugins.sources.odbc.source import OdbcSource


class OdbcCatalog(DriverCatalog):
    """The tables of a database. Each is read as a dataset `odbc:schema.table` is."""

    hidden = OF_SYSTEM | {"mysql", "performance_schema"}

    def _source(self) -> Source:
        return OdbcSource()

    def _catalogs(self, request: SourceRequest) -> Iterable[tuple[str, list[DriverTable]]]:
        return [("", source.listed(request))]
