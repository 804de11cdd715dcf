"""Connections over drivers of ADBC, and the causes of their errors."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from adbc_driver_manager import (
    AdbcConnection,
    AdbcDatabase,
    AdbcStatement,
    AdbcStatusCode,
    ConnectionOptions,
    DatabaseOptions,
    GetObjectsDepth,
    dbapi,
)

from caraway_plugins.sources import driver_messages
from caraway_plugins.sources.driver_catalogs import DriverTable
from caraway_plugins.sources.foreign_dialects import SESSIONS

Error = dbapi.Error
FAILURES: tuple[type[Exception], ...] = (dbapi.Error, pa.ArrowException, OSError)
"""The exceptions of drivers for a statement that fails."""
OPTION = "option."
"""Before the name of an option of the driver in a login."""
_CURRENT = {
    "catalog": ConnectionOptions.CURRENT_CATALOG,
    "schema": ConnectionOptions.CURRENT_DB_SCHEMA,
}
_UTF8 = "SET client_encoding = 'UTF8'"
"""For drivers of PostgreSQL, which take texts as UTF-8 whatever the server sends."""
_PLACES = frozenset({"driver", "entrypoint", "dialect", "catalog", "schema"})
_AWAY = (AdbcStatusCode.IO, AdbcStatusCode.TIMEOUT, AdbcStatusCode.CANCELLED)
_AUTH = (AdbcStatusCode.UNAUTHENTICATED, AdbcStatusCode.UNAUTHORIZED)
_KIND = re.compile(r"^(?:[A-Z_]+: )?(?:\[[^\]]+\] )?")
_END = re.compile(r"\s*\((?:[A-Z]\w+); .*", re.DOTALL)


class DriverConnection:
    """A connection for one statement at a time."""

    def __init__(
        self,
        database: AdbcDatabase,
        options: Mapping[str, str] | None = None,
        session: Sequence[str] = (),
    ) -> None:
        """Open it on a database, which it closes, and run the statements of the session.

        Raises:
            Error: the server refuses the login, or cannot be reached.
        """
        self._database = database
        self._statement: Any = None
        try:
            self._connection = AdbcConnection(database)
        except BaseException:
            database.close()
            raise
        try:
            if options:
                self._connection.set_options(**options)
            for each in session:
                self.begin(each).close()
                self.end()
        except BaseException:
            self.close()
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

    def declared(self, relation: Sequence[str]) -> pa.Schema:
        """Return the columns that a table declares, where an answer without rows has no types.

        Such databases have no schemas: what is before the name is a catalog.

        Raises:
            Error: there is no such table.
        """
        *before, table = relation
        catalog = before[-1] if before else None
        return pa.schema(self._connection.get_table_schema(catalog, None, table))

    def catalogs(self) -> Iterator[tuple[str, list[DriverTable]]]:
        """Yield the catalogs of the database with their tables.

        Raises:
            Error: the driver does not list them, or cannot reach the server.
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


def _tables(catalog: Mapping[str, Any]) -> Iterator[DriverTable]:
    for schema in catalog["catalog_db_schemas"] or ():
        for table in schema["db_schema_tables"] or ():
            kind = (table["table_type"] or "").upper()
            yield DriverTable(schema["db_schema_name"] or "", table["table_name"], kind)


def opened(login: Mapping[str, str]) -> DriverConnection:
    """Open a connection with the driver of a login.

    Raises:
        Error: there is no such driver, or the server refuses the login, or cannot be reached.
    """
    options = {
        name.removeprefix(OPTION): value for name, value in login.items() if name.startswith(OPTION)
    }
    for name in ("uri", "username", "password"):
        if name in login:
            options[DatabaseOptions[name.upper()].value] = login[name]
    places = {
        "catalog": ConnectionOptions.CURRENT_CATALOG,
        "schema": ConnectionOptions.CURRENT_DB_SCHEMA,
    }
    current = {option.value: login[name] for name, option in places.items() if name in login}
    database = AdbcDatabase(**options, **_library(login))
    session = [*SESSIONS.get(login["dialect"], ())]
    if "postgres" in login["driver"]:
        session.append(_UTF8)
    return DriverConnection(database, current, session)


def _library(login: Mapping[str, str]) -> dict[str, str]:
    """Return the library of a driver: that of a package, or what the driver manager finds."""
    driver, entrypoint = login["driver"], login.get("entrypoint")
    package = f"adbc_driver_{driver.removeprefix('adbc_driver_')}"
    if driver == "duckdb" and (found := find_spec("_duckdb")) is not None:
        driver, entrypoint = str(found.origin), entrypoint or "duckdb_adbc_init"
    elif package.isidentifier() and find_spec(package) is not None:
        driver = importlib.import_module(package)._driver_path()
    return {"driver": driver, **({"entrypoint": entrypoint} if entrypoint else {})}


def is_away(exc: BaseException) -> bool:
    """Return whether an error means that the server cannot be reached."""
    if isinstance(exc, Error):
        return exc.status_code in _AWAY
    # Errors while rows flow have no code.
    is_driver = driver_messages.is_unfit(str(exc))
    return not is_driver and driver_messages.of_server(str(exc)) is None


def is_refused(exc: BaseException) -> bool:
    """Return whether an error means that the server refuses the login or a right."""
    is_refused = driver_messages.is_refused(str(exc))
    return is_refused or getattr(exc, "status_code", None) in _AUTH


def message(exc: BaseException, login: Mapping[str, str]) -> str:
    """Return the message of the server in an error, without those of the driver and the login."""
    own = driver_messages.of_server(str(exc)) or _END.sub("", _KIND.sub("", str(exc)))
    secrets = [value for name, value in login.items() if name not in _PLACES]
    return driver_messages.shown(own, secrets)
