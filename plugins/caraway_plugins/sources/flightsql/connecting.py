"""Connections to Flight SQL servers, and the causes of their errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import adbc_driver_flightsql
import pyarrow as pa
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import (
    AdbcConnection,
    AdbcStatement,
    AdbcStatusCode,
    GetObjectsDepth,
    dbapi,
)

Error = dbapi.Error
_LONGEST_MESSAGE = 200
_AWAY = (AdbcStatusCode.IO, AdbcStatusCode.TIMEOUT, AdbcStatusCode.CANCELLED)
_AUTH = (AdbcStatusCode.UNAUTHENTICATED, AdbcStatusCode.UNAUTHORIZED)
_KIND = re.compile(r"^.*?\[FlightSQL\] ", re.DOTALL)
_END = re.compile(r"\s*\((?:[A-Z]\w+); .*", re.DOTALL)
_HEADER = DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
_OPTIONS = {
    "username": "username",
    "password": "password",
    "authorization": DatabaseOptions.AUTHORIZATION_HEADER.value,
    "api_key": f"{_HEADER}x-api-key",
    "roots": DatabaseOptions.TLS_ROOT_CERTS.value,
}


class FlightSqlConnection:
    """A connection for one statement at a time."""

    def __init__(self, login: Mapping[str, str], timeout_s: float | None = None) -> None:
        """Open it; the first statement reaches the server.

        Raises:
            Error: the server refuses the login, or cannot be reached.
        """
        options = {_OPTIONS[name]: value for name, value in login.items() if name in _OPTIONS}
        if timeout_s is not None:
            options[DatabaseOptions.TIMEOUT_QUERY.value] = str(timeout_s)
            options[DatabaseOptions.TIMEOUT_FETCH.value] = str(timeout_s)
        self._database = adbc_driver_flightsql.connect(login["uri"], db_kwargs=options)
        self._statement: Any = None
        try:
            self._connection = AdbcConnection(self._database)
        except BaseException:
            self._database.close()
            raise

    def begin(self, sql: str) -> pa.RecordBatchReader:
        """Run a statement, and return its rows.

        The cursor of DB-API would prepare each statement, with a call before and one after it.

        Raises:
            Error: the server refuses it, or cannot be reached.
        """
        self._statement = AdbcStatement(self._connection)
        self._statement.set_sql_query(sql)
        handle, _count = self._statement.execute_query()
        return pa.RecordBatchReader.from_stream(handle)

    def catalogs(self) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
        """Yield the catalogs of the server, with the schema, the name and the kind of each table.

        Raises:
            Error: the server does not list them, or cannot be reached.
        """
        handle = self._connection.get_objects(GetObjectsDepth.TABLES)
        for batch in pa.RecordBatchReader.from_stream(handle):
            for each in batch.to_pylist():
                yield each["catalog_name"] or "", list(_tables(each))

    def cancel(self) -> None:
        """Stop the statement; any thread may call it."""
        if (statement := self._statement) is not None:
            with suppress(Error):
                statement.cancel()

    def end(self) -> None:
        """Let go of the statement, of which no row is read any more."""
        if self._statement is not None:
            with suppress(Error):
                self._statement.close()
        self._statement = None

    def close(self) -> None:
        """Close the connection; no statement may be running on it."""
        self.end()
        for each in (self._connection, self._database):
            with suppress(Error):
                each.close()


def _tables(catalog: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for schema in catalog["catalog_db_schemas"] or ():
        for table in schema["db_schema_tables"] or ():
            yield schema["db_schema_name"] or "", table["table_name"], table["table_type"] or ""


def is_away(exc: BaseException) -> bool:
    """Return whether an error means that the server cannot be reached."""
    return getattr(exc, "status_code", None) in _AWAY or not isinstance(exc, Error)


def is_refused(exc: BaseException) -> bool:
    """Return whether an error means that the server refuses the login."""
    return getattr(exc, "status_code", None) in _AUTH


def message(exc: BaseException, login: Mapping[str, str]) -> str:
    """Return the message of the server in an error, without those of the driver and the login."""
    text = " ".join(_END.sub("", _KIND.sub("", str(exc))).split())
    secrets = [value for name, value in login.items() if name not in ("uri", "roots")]
    if any(each in text for each in secrets):
        return "the message of the server holds the login"
    return text[:_LONGEST_MESSAGE]
