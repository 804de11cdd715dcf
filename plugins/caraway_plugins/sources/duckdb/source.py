"""Datasets that are tables or views of a DuckDB file: `from: duckdb:TABLE`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.sqltext.grammar import CLOSED_QUOTED_NAME
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import params
from caraway_plugins.sources.duckdb import declared

if TYPE_CHECKING:
    import duckdb

_PART = rf'(?:{CLOSED_QUOTED_NAME}|[^".]+)'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")
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
     + (SELECT count(*) FROM duckdb_views() WHERE sql ILIKE '%collate%') > 0
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
        _file(request)
        return _look(request, _relation(request))

    def fingerprint(self, request: SourceRequest) -> str | None:
        return _status(request, _file(request))


def _check_installed(request: SourceRequest) -> None:
    if find_spec("duckdb") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading DuckDB files needs the package 'duckdb', which "
            "is not installed; install it with: pip install 'caraway[duckdb]'",
        )


def _file(request: SourceRequest) -> Path:
    values = params.checked(request.connector, request.params)
    written = values.text("duckdb_open")
    if written is None:
        raise DatasetError(
            "invalid", f"dataset '{request.name}': params.duckdb_open is missing; name the file"
        )
    return (request.base_dir / written).absolute()


def _relation(request: SourceRequest) -> tuple[str, str]:
    """Return the schema and the table of a `from`."""
    match = _NAME.fullmatch(request.path.strip())
    if match is None:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': '{request.path}' is no table; write 'duckdb:table' or "
            "'duckdb:schema.table', and names with dots in double quotes",
        )
    schema, table = (part and _bare(part) for part in match.groups())
    return schema or "main", table


def _bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _status(request: SourceRequest, file: Path) -> str:
    """Return what changes when the file or the log of its changes does."""
    parts = []
    for each in (file, file.with_name(f"{file.name}.wal")):
        try:
            status = each.stat()
        except FileNotFoundError:
            if each == file:
                raise DatasetError(
                    "not_found",
                    f"dataset '{request.name}': the file of params.duckdb_open does not exist",
                ) from None
            continue
        except OSError as exc:
            raise DatasetError(
                "unavailable",
                f"dataset '{request.name}': the file of params.duckdb_open cannot be read: "
                f"{exc.strerror}",
            ) from exc
        parts.append(f"{status.st_mtime_ns} {status.st_size}")
    return " ".join(parts)


@contextmanager
def opened(request: SourceRequest) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open the file of a request.

    Raises:
        DatasetError: it cannot be opened.
    """
    _check_installed(request)
    file = _file(request)
    _status(request, file)
    import duckdb

    from caraway_plugins.sources.duckdb import reader

    try:
        connection = reader.connect(str(file))
    except duckdb.Error as exc:
        raise _not_opened(request, exc) from exc
    try:
        yield connection
    finally:
        connection.close()


def _look(request: SourceRequest, relation: tuple[str, str]) -> RemoteTable:
    with opened(request) as connection:
        columns, row_count = _described(request, connection, relation)
    columns = _declared(request, columns)
    file = _file(request)
    return RemoteTable(
        pa.schema([pa.field(each.name, each.type) for each in columns]),
        "duckdb",
        relation,
        columns,
        {"path": str(file)},
        file.stat().st_size,
        row_count=row_count,
    )


def _described(
    request: SourceRequest, connection: "duckdb.DuckDBPyConnection", relation: tuple[str, str]
) -> tuple[tuple[RemoteColumn, ...], int | None]:
    import duckdb

    try:
        return _found(connection, relation)
    except duckdb.CatalogException as exc:
        raise DatasetError(
            "not_found",
            f"dataset '{request.name}': the file of params.duckdb_open has no table "
            f"'{'.'.join(relation)}'",
        ) from exc
    except duckdb.Error as exc:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': DuckDB cannot describe '{'.'.join(relation)}'; a view may "
            "only read tables of its file",
        ) from exc


def _not_opened(request: SourceRequest, exc: "duckdb.Error") -> DatasetError:
    if "lock" in str(exc):
        message = "another process has the file of params.duckdb_open open for writing"
        return DatasetError(
            "unavailable", f"dataset '{request.name}': {message}; it is tried again"
        )
    message = "the file of params.duckdb_open is not a DuckDB database that this version can read"
    return DatasetError("invalid", f"dataset '{request.name}': {message}")


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


def _declared(
    request: SourceRequest, columns: tuple[RemoteColumn, ...]
) -> tuple[RemoteColumn, ...]:
    """Return the declared columns of a table; without any, all of them."""
    if not request.declared:
        return columns
    known = {each.name: each for each in columns}
    found = []
    for field in request.declared:
        if (column := known.get(field.name)) is None:
            raise DatasetError(
                "schema", f"dataset '{request.name}': its table has no column '{field.name}'"
            )
        if field.type != column.type:
            is_text = column.is_text or pa.types.is_string(field.type)
            column = RemoteColumn(field.name, field.type, False, is_text)
        found.append(column)
    return tuple(found)
