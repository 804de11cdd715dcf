"""Datasets that are tables of any database with a driver of ODBC: `from: odbc:TABLE`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import described_tables, foreign_dialects, params
from caraway_plugins.sources.driver_catalogs import DriverTable
from caraway_plugins.sources.odbc import declared

_SIZES = {
    "rows": ("odbc_max_num_rows_per_batch", 8_192),
    "bytes": ("odbc_max_bytes_per_batch", 64 * 1024 * 1024),
    "text": ("odbc_max_text_size", 64 * 1024),
    "binary": ("odbc_max_binary_size", 64 * 1024),
}
"""Drivers fill buffers that have room for the longest value of each column."""
_TYPES = """
SELECT a.attname AS name, t.typname AS type FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = CAST('{}' AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
"""
_LIST = "SELECT table_schema, table_name, table_type FROM information_schema.tables"
"""The tables that a user may read, in standard SQL."""
_LISTS = {
    "sqlite": "SELECT 'main' AS s, name, type FROM sqlite_schema WHERE type IN ('table', 'view') "
    "AND name NOT GLOB 'sqlite_*'",
}
_KINDS = {
    "bool": pa.types.is_boolean, "int2": pa.types.is_integer, "int4": pa.types.is_integer,
    "int8": pa.types.is_integer, "text": pa.types.is_string, "varchar": pa.types.is_string,
    "bpchar": pa.types.is_string, "date": pa.types.is_date, "timestamp": pa.types.is_timestamp,
}  # fmt: skip
"""Types of PostgreSQL that compare with literals of the type that the driver gives."""


class OdbcSource:
    """A table or view of a database that a driver of ODBC reads."""

    declaration = declared.ODBC
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)

    def resolve(self, request: SourceRequest) -> RemoteTable:
        login, columns = _look(request)
        return described_tables.table(request, f"odbc/{login['dialect']}", columns, login)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return described_tables.fingerprint(_look(request)[1])


def listed(request: SourceRequest) -> list[DriverTable]:
    """Return the tables and views of a database that its user may read.

    Raises:
        DatasetError: they cannot be listed.
    """
    connecting = _connecting(request)
    login = _login(request)
    sql = _LISTS.get(login["dialect"], _LIST)
    try:
        rows = list(connecting.OdbcConnection(login).rows(sql))
    except connecting.FAILURES as exc:
        raise _not_read(request, login, exc) from exc
    found = (map(str, row.values()) for row in rows)
    return [DriverTable(schema, name, kind.upper()) for schema, name, kind in found]


def _connecting(request: SourceRequest) -> Any:
    try:
        from caraway_plugins.sources.odbc import connecting
    except (ImportError, OSError) as exc:
        raise DatasetError("unsupported", _not_installed(request, exc)) from exc
    return connecting


def _look(request: SourceRequest) -> tuple[dict[str, str], list[RemoteColumn]]:
    connecting = _connecting(request)
    login, relation = _login(request), described_tables.relation(request)
    dialect = login["dialect"]
    quote = foreign_dialects.DIALECTS[dialect].quote
    table = ".".join(quote + each.replace(quote, quote * 2) + quote for each in relation)
    try:
        connection = connecting.OdbcConnection(login)
        schema = connection.described(f"SELECT * FROM {table} WHERE 1 = 0")
        kinds = {}
        if dialect == "postgresql":
            asked = _TYPES.format(table.replace("'", "''"))
            kinds = {row["name"]: row["type"] for row in connection.rows(asked)}
    except connecting.FAILURES as exc:
        raise _not_read(request, login, exc) from exc
    return login, [_column(each, dialect, kinds) for each in schema]


def _column(field: pa.Field, dialect: str, kinds: Mapping[str, str]) -> RemoteColumn:
    type_ = described_tables.column_type(field.type)
    is_comparable = not pa.types.is_floating(type_)  # The driver may have rounded them.
    if pa.types.is_floating(type_):
        type_ = pa.float64()
    if pa.types.is_fixed_size_binary(type_):
        type_ = pa.binary()
    if dialect == "postgresql":
        is_kind = _KINDS.get(kinds.get(field.name, ""))
        is_comparable = is_kind is not None and bool(is_kind(type_))
    # The driver of SQLite cuts microseconds, and keeps 15 digits of doubles.
    is_cut = pa.types.is_timestamp(type_) or pa.types.is_floating(type_)
    is_text = dialect == "sqlite" and is_cut
    return RemoteColumn(field.name, type_, is_comparable, is_text)


def _not_installed(request: SourceRequest, exc: Exception) -> str:
    start = f"dataset '{request.name}': drivers of ODBC need "
    if isinstance(exc, ModuleNotFoundError):
        return (
            f"{start}the package 'arrow-odbc', which is not installed; install it with: pip "
            "install 'caraway[odbc]'"
        )
    return f"{start}unixODBC, which is not installed; install the package unixodbc of the system"


def _not_read(request: SourceRequest, login: Mapping[str, str], exc: Exception) -> DatasetError:
    from caraway_plugins.sources.odbc import connecting

    start, said = f"dataset '{request.name}':", connecting.message(exc, login)
    if connecting.is_without_driver(exc):
        return DatasetError(
            "unsupported",
            f"{start} there is no driver of ODBC of this name; install it, and see `odbcinst -q "
            "-d` for the names that params.odbc_connection_string may have",
        )
    if connecting.is_refused(exc):
        return DatasetError(
            "auth",
            f"{start} the database refuses the login, or its rights; check params.odbc_username, "
            "odbc_password and odbc_connection_string",
        )
    if connecting.is_away(exc):
        return DatasetError(
            "unavailable",
            f"{start} the database cannot be reached; check params.odbc_connection_string and the "
            "network",
        )
    table = f"table '{request.path}'" if request.path else "list of tables"
    if described_tables.is_absent(str(exc)):
        return DatasetError("not_found", f"{start} the database has no {table}, or is not there")
    return DatasetError("invalid", f"{start} {table} cannot be read: {said}")


def _login(request: SourceRequest) -> dict[str, str]:
    """Return how to connect, the sizes of buffers, and the dialect.

    Raises:
        DatasetError: a param is missing, unknown or wrong.
    """
    given = params.checked(request.connector, request.params)
    written = given.text("odbc_connection_string")
    if written is None:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': params.odbc_connection_string is missing; write for "
            "example Driver={PostgreSQL Unicode};Server=host;Database=db",
        )
    login = {
        "connection_string": written,
        "dialect": described_tables.dialect(request, "odbc_dialect", "sql_dialect"),
    }
    for name in ("username", "password"):
        if (text := given.text(f"odbc_{name}")) is not None:
            login[name] = text
    for name, (param, usual) in _SIZES.items():
        login[name] = str(given.count(param) or usual)
    if given.text("odbc_query_timeout") is not None:
        login["query_timeout"] = str(max(1, round(given.seconds("odbc_query_timeout", 1.0))))
    return login
