"""Connections to Flight SQL servers."""

from __future__ import annotations

from collections.abc import Mapping

import adbc_driver_flightsql
from adbc_driver_flightsql import DatabaseOptions

from caraway_plugins.sources.adbc.connecting import DriverConnection

_HEADER = DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
_OPTIONS = {
    "username": "username",
    "password": "password",
    "authorization": DatabaseOptions.AUTHORIZATION_HEADER.value,
    "api_key": f"{_HEADER}x-api-key",
    "roots": DatabaseOptions.TLS_ROOT_CERTS.value,
}


class FlightSqlConnection(DriverConnection):
    """A connection for one statement at a time; the first one reaches the server."""

    def __init__(self, login: Mapping[str, str], timeout_s: float | None = None) -> None:
        """Open it.

        Raises:
            Error: the login cannot be used.
        """
        options = {_OPTIONS[name]: value for name, value in login.items() if name in _OPTIONS}
        if timeout_s is not None:
            options[DatabaseOptions.TIMEOUT_QUERY.value] = str(timeout_s)
            options[DatabaseOptions.TIMEOUT_FETCH.value] = str(timeout_s)
        super().__init__(adbc_driver_flightsql.connect(login["uri"], db_kwargs=options))
