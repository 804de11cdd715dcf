"""Connections to Flight SQL servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import adbc_driver_flightsql
import pyarrow as pa
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import GetObjectsDepth

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

    def catalogs(self) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
        """Yield the catalogs of the server, with the schema, the name and the kind of each table.

        Raises:
            Error: the server does not list them, or cannot be reached.
        """
        handle = self._connection.get_objects(GetObjectsDepth.TABLES)
        for batch in pa.RecordBatchReader.from_stream(handle):
            for each in batch.to_pylist():
                yield each["catalog_name"] or "", list(_tables(each))


def _tables(catalog: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for schema in catalog["catalog_db_schemas"] or ():
        for table in schema["db_schema_tables"] or ():
            yield schema["db_schema_name"] or "", table["table_name"], table["table_type"] or ""
