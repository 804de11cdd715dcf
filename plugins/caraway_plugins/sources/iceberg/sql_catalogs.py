"""Catalogs of Iceberg in a SQL database, as those of PyIceberg and the JDBC catalog of Java."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.database_files import DatabaseFile
from caraway_plugins.sources.iceberg.pointers import ListedPointer, PointerPath

_NAME = "iceberg_catalog_name"
_FILE = "sqlite_file"
_TABLES = "iceberg_tables"
_ALL = f"SELECT * FROM {_TABLES}"
_ONE = f"{_ALL} WHERE table_namespace = ? AND table_name = ?"
_MOVE = (
    f"UPDATE {_TABLES} SET metadata_location = ?, previous_metadata_location = ? "
    "WHERE table_namespace = ? AND table_name = ? AND metadata_location = ? AND catalog_name = ?"
)
_NAMESPACES = "SELECT catalog_name, namespace FROM iceberg_namespace_properties"
_VIEW = "VIEW"
_BUSY_S = 5.0
_MOST_SHOWN = 5
Row = Mapping[str, Any]
Ask = Callable[..., list[Row]]


class SqlCatalog:
    """The tables of a catalog in a database. Views are left out.

    A database may have several catalogs.
    """

    def tables(self, request: SourceRequest, path: PointerPath) -> Iterator[ListedPointer]:
        name = params.checked(request.connector, request.params).text(_NAME)
        rows = _rows(request, path, _ALL)
        rows = [each for each in rows if name in (None, each["catalog_name"])]
        _refuse_several(rows)
        found = [each for each in map(_listed, _kept(rows)) if _is_below(each.namespace, path)]
        if path.namespace and not found and not self._has_namespace(request, path, name):
            title = ".".join(path.namespace)
            raise DatasetError("not_found", f"the catalog has no namespace '{title}'")
        yield from sorted(found, key=lambda each: (each.namespace, each.name))

    def location(self, request: SourceRequest, path: PointerPath) -> str:
        return _listed(self._row(request, path)).location

    def move(self, request: SourceRequest, path: PointerPath, before: str, after: str) -> bool:
        catalog = str(self._row(request, path)["catalog_name"])
        namespace = ".".join(path.namespace)
        values = (after, before, namespace, path.table, before, catalog)
        change = _change_sqlite if path.kind == "sqlite" else _change_postgres
        return change(request, _MOVE, *values) == 1

    def _row(self, request: SourceRequest, path: PointerPath) -> Row:
        name = params.checked(request.connector, request.params).text(_NAME)
        rows = _rows(request, path, _ONE, ".".join(path.namespace), path.table)
        rows = _kept([each for each in rows if name in (None, each["catalog_name"])])
        _refuse_several(rows)
        if not rows:
            raise DatasetError("not_found", f"the catalog has no {path.title}")
        return rows[0]

    def _has_namespace(self, request: SourceRequest, path: PointerPath, name: str | None) -> bool:
        namespace = ".".join(path.namespace)
        rows = _rows(request, path, f"{_NAMESPACES} WHERE namespace = ?", namespace)
        return any(name in (None, each["catalog_name"]) for each in rows)


def _rows(request: SourceRequest, path: PointerPath, sql: str, *values: str) -> list[Row]:
    ask = _of_sqlite if path.kind == "sqlite" else _of_postgres
    return ask(request, sql, *values)


def _listed(row: Row) -> ListedPointer:
    namespace, name, location = (
        row[each] for each in ("table_namespace", "table_name", "metadata_location")
    )
    if not location:
        raise DatasetError(
            "invalid", f"the catalog has no place of the metadata of '{namespace}.{name}'"
        )
    return ListedPointer(tuple(str(namespace).split(".")), str(name), str(location))


def _kept(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of tables; older catalogs have no other ones, and no column that says so."""
    return [each for each in rows if each.get("iceberg_type") != _VIEW]


def _is_below(namespace: Sequence[str], path: PointerPath) -> bool:
    return tuple(namespace[: len(path.namespace)]) == path.namespace


def _refuse_several(rows: Sequence[Row]) -> None:
    names = sorted({str(each["catalog_name"]) for each in rows})
    if len(names) > 1:
        shown = ", ".join(f"'{each}'" for each in names[:_MOST_SHOWN])
        raise DatasetError(
            "invalid",
            f"the database has {len(names)} catalogs ({shown}); name one in params.{_NAME}",
        )


def _of_sqlite(request: SourceRequest, sql: str, *values: str) -> list[Row]:
    with _opened_sqlite(request, "ro") as connection:
        connection.row_factory = sqlite3.Row
        return [dict(each) for each in connection.execute(sql, values)]


def _change_sqlite(request: SourceRequest, sql: str, *values: str) -> int:
    with _opened_sqlite(request, "rw") as connection, connection:
        return connection.execute(sql, values).rowcount


@contextmanager
def _opened_sqlite(request: SourceRequest, mode: str) -> Iterator[sqlite3.Connection]:
    file = DatabaseFile.from_request(request, _FILE)
    file.status("-wal")
    try:
        opened = sqlite3.connect(f"{file.path.as_uri()}?mode={mode}", timeout=_BUSY_S, uri=True)
        with closing(opened) as connection:
            yield connection
    except sqlite3.OperationalError as exc:
        if "no such table" in str(exc):
            raise file.error("not_found", f"has no Iceberg catalog, no table {_TABLES}") from exc
        if "readonly" in str(exc):
            raise file.error("auth", "cannot be written; check its permissions") from exc
        raise file.error("unavailable", "cannot be read, or is being written") from exc
    except sqlite3.IntegrityError as exc:
        raise file.error("invalid", "refuses the change; look at its triggers") from exc
    except sqlite3.Error as exc:
        raise file.error("invalid", "is not a SQLite database") from exc


def _of_postgres(request: SourceRequest, sql: str, *values: str) -> list[Row]:
    with _postgres_cursor(request) as cursor:
        cursor.execute(sql.replace("?", "%s"), values)
        names = [each.name for each in cursor.description]
        return [dict(zip(names, each, strict=True)) for each in cursor.fetchall()]


def _change_postgres(request: SourceRequest, sql: str, *values: str) -> int:
    with _postgres_cursor(request) as cursor:
        cursor.execute(sql.replace("?", "%s"), values)
        count: int = cursor.rowcount
        return count


@contextmanager
def _postgres_cursor(request: SourceRequest) -> Iterator[Any]:
    try:
        from caraway_plugins.changes.postgres import connecting
    except ImportError as exc:
        raise DatasetError(
            "unsupported",
            "a catalog in PostgreSQL needs the package 'psycopg2', which is not installed; "
            "install it with: pip install 'caraway[postgres]'",
        ) from exc
    place = connecting.place_of(
        ChangeRequest(TableName(request.name), request.connector, _TABLES, request.params)
    )
    connection = connecting.connect(place)
    try:
        with connecting.mapped(place), connection.cursor() as cursor:
            yield cursor
    finally:
        connecting.close(connection)
