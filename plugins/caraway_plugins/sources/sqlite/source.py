"""Datasets that are tables or views of a SQLite file: `from: sqlite:TABLE`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import database_files
from caraway_plugins.sources.database_files import DatabaseFile
from caraway_plugins.sources.sqlite import declared, forms

_LOG = "-wal"
_COLUMNS = """
SELECT name, type, pk, hidden FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1 ORDER BY cid
"""
_KIND = """
SELECT type, wr, strict FROM pragma_table_list(?) WHERE schema = 'main'
"""
_HAS_STATISTICS = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"
_ROWS = "SELECT stat FROM sqlite_stat1 WHERE tbl = ? COLLATE NOCASE LIMIT 1"
_STRICT = {"INT": pa.int64(), "INTEGER": pa.int64(), "REAL": pa.float64(), "BLOB": pa.binary()}
"""Types of strict tables whose values need no check. Text does, so that no collation applies."""
_MOST_COLUMNS = 2_000
"""The most columns of a view, with one for the number of each row."""


class SqliteSource:
    """A table or view that SQLite answers statements about, in the process that reads it."""

    declaration = declared.SQLITE
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)

    def resolve(self, request: SourceRequest) -> RemoteTable:
        file = DatabaseFile.from_request(request, "sqlite_file")
        schema, name = database_files.relation(request)
        with opened(request, name) as cursor:
            found = _found(cursor, name) if schema == "main" else None
        if found is None:
            raise file.error("not_found", f"has no table '{schema}.{name}'")
        known = {each.name: each for each in found.columns}
        columns = [_read(*each) for each in database_files.chosen(request, known)]
        return _table(file, name, columns, found)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return _status(DatabaseFile.from_request(request, "sqlite_file"))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the file. `is_sure` says that all values have its type.

    `affine` is the type that the table gives to values where it can.
    """

    name: str
    type: pa.DataType | None
    is_sure: bool
    affine: pa.DataType | None


@dataclass(frozen=True, slots=True)
class _Found:
    columns: tuple[_Column, ...]
    is_utf8: bool
    row_count: int | None


@dataclass(frozen=True, slots=True)
class _ReadColumn:
    """A column of the dataset: its type, and the SQL of its values.

    `unchecked` is the SQL of those that the reader checks, if there is one.
    """

    name: str
    type: pa.DataType
    sql: str
    is_any: bool
    unchecked: str = ""


@contextmanager
def opened(request: SourceRequest, name: str) -> Iterator[Any]:
    """Return a cursor over the file of a request, to read the definition of a table.

    Raises:
        DatasetError: the file cannot be opened, or the table not described.
    """
    if find_spec("adbc_driver_sqlite") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading SQLite files needs the package "
            "'adbc-driver-sqlite', which is not installed; install it with: "
            "pip install 'caraway[sqlite]'",
        )
    file = DatabaseFile.from_request(request, "sqlite_file")
    _status(file)
    from adbc_driver_manager import dbapi

    from caraway_plugins.sources.sqlite import connecting

    try:
        with connecting.connect(str(file.path)) as connection, connection.cursor() as cursor:
            yield cursor
    except dbapi.Error as exc:
        raise _not_read(file, name, connecting.said(exc)) from exc


def _status(file: DatabaseFile) -> str:
    return file.status(f"{file.path}{_LOG}")


def _not_read(file: DatabaseFile, name: str, said: str) -> DatasetError:
    from caraway_plugins.sources.sqlite import connecting

    if connecting.LOCKED in said:
        return file.error("unavailable", "is being written by another process; it is tried again")
    if "not a database" in said or "malformed" in said or "unsupported file" in said:
        return file.error("invalid", "is not a SQLite database")
    if "failed to open" in said or "unable to open" in said or "readonly" in said:
        return file.error(
            "unavailable",
            "cannot be opened; a file with a log also needs a folder that this "
            "process may write to",
        )
    return file.error(
        "invalid",
        f"has a table '{name}' that SQLite cannot describe; a view may only read "
        "tables of its file",
    )


def _found(cursor: object, name: str) -> _Found | None:
    kinds = _rows(cursor, _KIND, name)
    if not kinds:
        return None
    kind, has_no_rowid, is_strict = kinds[0]
    rows = _rows(cursor, _COLUMNS, name)
    keys = [each for each, type_, place, _ in rows if place and type_.upper() == "INTEGER"]
    is_rowid = kind == "table" and not has_no_rowid and sum(bool(row[2]) for row in rows) == 1
    rowid = keys[0] if is_rowid and keys else None
    columns = tuple(
        _Column(
            each,
            forms.arrow_type(type_),
            each == rowid or (bool(is_strict) and type_.upper() in _STRICT),
            forms.affine_type(type_) if kind == "table" and not hidden else None,
        )
        for each, type_, _place, hidden in rows
    )
    encoding = _rows(cursor, "PRAGMA encoding")[0][0]
    return _Found(columns, encoding == "UTF-8", _row_count(cursor, name))


def _rows(cursor: Any, sql: str, *arguments: str) -> Sequence[tuple[Any, ...]]:
    cursor.execute(sql, arguments or None)
    rows: Sequence[tuple[object, ...]] = cursor.fetchall()
    return rows


def _row_count(cursor: object, name: str) -> int | None:
    """Return the count of the statistics that ANALYZE makes, if they are there."""
    if not _rows(cursor, _HAS_STATISTICS)[0][0]:
        return None
    rows = _rows(cursor, _ROWS, name)
    return int(rows[0][0].split()[0]) if rows and rows[0][0] else None


def _read(column: _Column, type_: pa.DataType | None) -> _ReadColumn:
    quoted = _quoted(column.name)
    given = column.type if type_ is None else type_
    is_any = given is None or (pa.types.is_string(given) and column.type != given)
    if column.is_sure and given == column.type:
        return _ReadColumn(column.name, column.type, quoted, is_any)
    sql = forms.checked(quoted, column.name, None if is_any else given, column.affine)
    if given is None or is_any:
        return _ReadColumn(column.name, pa.string() if given is None else given, sql, is_any)
    cheap = forms.unchecked(quoted, column.name, given, column.affine)
    return _ReadColumn(column.name, given, sql, is_any, cheap)


def _table(
    file: DatabaseFile, name: str, columns: Sequence[_ReadColumn], found: _Found
) -> RemoteTable:
    unchecked = _named_unchecked(columns)
    named = [(each.sql, each.name) for each in columns]
    named += [(each.unchecked, unchecked[each.name]) for each in columns if each.name in unchecked]
    selected = ", ".join(f"{sql} AS {_quoted(each)}" for sql, each in named)
    table = _quoted(name)
    return RemoteTable(
        pa.schema([pa.field(each.name, each.type) for each in columns]),
        "sqlite",
        (name,),
        tuple(
            RemoteColumn(
                each.name,
                each.type,
                not each.is_any and (found.is_utf8 or not pa.types.is_string(each.type)),
                unchecked=unchecked.get(each.name, ""),
            )
            for each in columns
        ),
        {
            "path": str(file.path),
            "view": f"CREATE TEMP VIEW {table} AS SELECT {selected} FROM main.{table}",
        },
        file.path.stat().st_size,
        row_count=found.row_count,
    )


def _named_unchecked(columns: Sequence[_ReadColumn]) -> Mapping[str, str]:
    """Return names, which no column has, for the unchecked values of columns."""
    prefix = "unchecked"
    while any(each.name.lower().startswith(prefix) for each in columns):
        prefix += "_"
    found = [each.name for each in columns if each.unchecked]
    if len(columns) + len(found) >= _MOST_COLUMNS:
        return {}
    return {name: f"{prefix}{number}" for number, name in enumerate(found)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
