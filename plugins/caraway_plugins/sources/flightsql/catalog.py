"""Catalogs that are Flight SQL servers: all tables that they list in their metadata."""

from collections.abc import Iterable

from caraway_core.protocols.sources import Source, SourceRequest
from caraway_plugins.sources.driver_catalogs import OF_SYSTEM, DriverCatalog, DriverTable
from caraway_plugins.sources.flightsql import source
from caraway_plugins.sources.flightsql.source import FlightSqlSource


class FlightSqlCatalog(DriverCatalog):
    """The tables of a server. Each is read as a dataset `flightsql:catalog.schema.table` is."""

    def _source(self) -> Source:
        return FlightSqlSource()

    def _catalogs(self, request: SourceRequest) -> Iterable[tuple[str, list[DriverTable]]]:
        login = source.login_of(request)
        with source.opened(request, login, "the server does not list its tables") as connection:
            return list(connection.catalogs())


class CarawayCatalog(FlightSqlCatalog):
    """The datasets and views of another runtime, or the tables of one of its catalogs."""

    own = "caraway"
    hidden = OF_SYSTEM | {"runtime"}
