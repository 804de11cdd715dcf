"""Runs statements in Flight SQL servers, over connections that are kept."""

from caraway_plugins.sources.adbc.reader import AdbcReader, AdbcRows
from caraway_plugins.sources.flightsql.connecting import FlightSqlConnection


class FlightSqlRows(AdbcRows):
    """The rows of a statement, read in batches."""

    def _connect(self) -> object:
        return FlightSqlConnection(self._table.login)


class FlightSqlReader(AdbcReader):
    """Reads tables of any number of servers, and keeps some idle connections."""

    rows = FlightSqlRows
