"""Datasets that are tables or views of a DuckDB file: `from: duckdb:TABLE`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import database_files
from caraway_plugins.sources.database_files import DatabaseFile
from caraway_plugins.sources.duckdb import beside, declared

if TYPE_CHECKING:
    import duckdb

_PARAM = "duckdb_open"
_COMPARABLE = re.compile(
    r"BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP"
    r"|TIMESTAMP WITH TIME ZONE|DECIMAL\(\d+,\d+\)"
)
_NATIVE = re.compile(
    rf"(?:{_COMPARABLE.pattern}|UTINYINT|USMALLINT|UINTEGER|UBIGINT|BLOB|TIME|TIMESTAMP_S"
    r"|TIMESTAMP_MS|TIMESTAMP_NS)(?:\[\])*"
)
"""Types that DuckDB sends as an Arrow type with the same values; all others are read as text."""
_HAS_COLLATIONS = """
SELECT (SELECT count(*) FROM duckdb_tables() WHERE sql ILIKE '%collate%')
     + (SELECT count(*) FROM duckdb_views()
        WHERE NOT internal AND sql ILIKE '%collate%') > 0
"""
_ROWS = """
SELECT estimated_size FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ?
"""


class DuckdbSource:
    """A table or view that DuckDB answers statements about, in the process that reads it."""

    declaration = declared.DUCKDB
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)

    def resolve(self, request: SourceRequest) -> RemoteTable:
        _check_installed(request)
        file = DatabaseFile.from_request(request, _PARAM)
        return _look(request, file, database_files.relation(request))

    def fingerprint(self, request: SourceRequest) -> str | None:
        return _status(DatabaseFile.from_request(request, _PARAM))


def _check_installed(request: SourceRequest) -> None:
    if find_spec("duckdb") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading DuckDB files needs the package 'duckdb', which "
            "is not installed; install it with: pip install 'caraway[duckdb]'",
        )


@contextmanager
def opened(request: SourceRequest) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open the file of a request.

    Raises:
        DatasetError: it cannot be opened.
    """
    _check_installed(request)
    file = DatabaseFile.from_request(request, _PARAM)
    _status(file)
    import duckdb

    from caraway_plugins.sources.duckdb import attached

    found, cursor = attached.taken(str(file.path)), None
    try:
        try:
            cursor = found.cursor()
        except duckdb.Error as exc:
            raise _not_opened(file, exc) from exc
        yield cursor
    finally:
        found.leave(cursor)


def _status(file: DatabaseFile) -> str:
    return file.status(beside.beside(str(file.path), beside.LOG))


def _look(request: SourceRequest, file: DatabaseFile, relation: tuple[str, str]) -> RemoteTable:
    with opened(request) as connection:
        columns, row_count = _described(file, connection, relation)
    found = database_files.chosen(request, {each.name: each for each in columns})
    columns = tuple(_as_declared(*each) for each in found)
    return RemoteTable(
        pa.schema([pa.field(each.name, each.type) for each in columns]),
        "duckdb",
        relation,
        columns,
        {"path": str(file.path)},
        file.path.stat().st_size,
        row_count=row_count,
    )


def _described(
    file: DatabaseFile, connection: "duckdb.DuckDBPyConnection", relation: tuple[str, str]
) -> tuple[tuple[RemoteColumn, ...], int | None]:
    import duckdb

    try:
        return _found(connection, relation)
    except duckdb.CatalogException as exc:
        raise file.error("not_found", f"has no table '{'.'.join(relation)}'") from exc
    except duckdb.Error as exc:
        raise file.error(
            "invalid",
            f"has a table '{'.'.join(relation)}' that DuckDB cannot describe; a view may only read "
            "tables of its file",
        ) from exc


def _not_opened(file: DatabaseFile, exc: "duckdb.Error") -> DatasetError:
    from caraway_plugins.sources.duckdb import attached

    if attached.is_busy(exc):
        return file.error("unavailable", "is being written by another process; it is tried again")
    return file.error("invalid", "is not a DuckDB database that this version can read")


def _found(
    connection: "duckdb.DuckDBPyConnection", relation: tuple[str, str]
) -> tuple[tuple[RemoteColumn, ...], int | None]:
    name = ".".join('"' + part.replace('"', '""') + '"' for part in relation)
    types = [row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {name}").fetchall()]
    schema = connection.execute(f"SELECT * FROM {name} LIMIT 0").to_arrow_table().schema
    (has_collations,) = connection.execute(_HAS_COLLATIONS).fetchall()[0]
    rows = connection.execute(_ROWS, relation).fetchall()
    columns = tuple(
        _column(field, type_, has_collations) for field, type_ in zip(schema, types, strict=True)
    )
    return columns, rows[0][0] if rows else None


def _column(field: pa.Field, type_: str, has_collations: bool) -> RemoteColumn:
    if not _NATIVE.fullmatch(type_):
        return RemoteColumn(field.name, pa.string(), is_text=True)
    is_comparable = _COMPARABLE.fullmatch(type_) is not None
    if type_ == "VARCHAR" and has_collations:
        is_comparable = False  # DuckDB does not say which columns have one.
    arrow = pa.timestamp("us", "UTC") if type_ == "TIMESTAMP WITH TIME ZONE" else field.type
    return RemoteColumn(field.name, arrow, is_comparable)


def _as_declared(column: RemoteColumn, type_: pa.DataType | None) -> RemoteColumn:
    if type_ is None or type_ == column.type:
        return column
    is_text = column.is_text or pa.types.is_string(type_)
    return RemoteColumn(column.name, type_, False, is_text)
