"""Datasets that are tables or views of MySQL or MariaDB: `from: mysql:TABLE`."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteSplit, RemoteTable
from caraway_plugins.sources import database_files, key_ranges
from caraway_plugins.sources.mysql import declared

_COLUMNS = """
SELECT column_name, data_type, column_type, character_set_name, numeric_precision, numeric_scale
FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND find_in_set('select', privileges)
ORDER BY ordinal_position
"""
_SIZE = """
SELECT table_rows, data_length FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
_KEY = """
SELECT min(column_name) FROM information_schema.key_column_usage
WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' HAVING count(*) = 1
"""
_WHOLE = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TYPES = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "year": pa.int16(),
    "bit": pa.binary(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
}
_COMPARABLE_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_UNICODE = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_MOST_DIGITS = 38
_AUTH = (1044, 1045, 1698)
_NO_DATABASE = 1049
_Run = Callable[..., list[tuple[Any, ...]]]


class _Found(NamedTuple):
    """A table of the server."""

    login: dict[str, str]
    relation: tuple[str, str]
    columns: list[RemoteColumn]
    size_bytes: int
    row_count: int | None
    splits: tuple[RemoteSplit, ...]


class MysqlSource:
    """A table or view that the server answers statements about."""

    declaration = declared.MYSQL
    capabilities = SourceCapabilities(
        projection=True, filters=True, limit=True, splits=True, statements=True
    )

    def resolve(self, request: SourceRequest) -> RemoteTable:
        found = _look(request)
        known = {each.name: each for each in found.columns}
        columns = tuple(_as_declared(*each) for each in database_files.chosen(request, known))
        return RemoteTable(
            pa.schema([pa.field(each.name, each.type) for each in columns]),
            "mysql",
            found.relation,
            columns,
            found.login,
            found.size_bytes,
            found.splits,
            found.row_count,
        )

    def fingerprint(self, request: SourceRequest) -> str | None:
        columns = _look(request).columns
        parts = [(each.name, str(each.type), each.is_comparable) for each in columns]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@contextmanager
def opened(
    request: SourceRequest, *, needs_database: bool = True
) -> Iterator[tuple[dict[str, str], _Run]]:
    """Connect to the server of a request; give its login, and what runs statements there.

    Raises:
        DatasetError: the server cannot be reached, or refuses the login or a statement.
    """
    if find_spec("pymysql") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': reading MySQL tables needs the package 'pymysql', which is "
            "not installed; install it with: pip install 'caraway[mysql]'",
        )
    import pymysql

    from caraway_plugins.sources.mysql import connecting

    login = connecting.login(request, needs_database=needs_database)
    try:
        connection = connecting.connect(login)
        try:
            yield login, partial(connecting.run, connection)
        finally:
            connecting.drop(connection)
    except (pymysql.MySQLError, OSError) as exc:
        raise _not_read(request, exc) from exc


def _look(request: SourceRequest) -> _Found:
    schema, table = database_files.relation(request)
    with opened(request) as (login, run):
        relation = (login["db"] if schema == "main" else schema, table)
        rows = run(_COLUMNS, *relation)
        sizes = run(_SIZE, *relation)
        row_count, size_bytes = sizes[0] if sizes else (None, None)
        splits = _splits(run, relation, {row[0]: row[1] for row in rows}, int(size_bytes or 0))
    if not rows:
        raise DatasetError(
            "not_found",
            f"dataset '{request.name}': the server has no table '{'.'.join(relation)}' that the "
            "user may read",
        )
    columns = [_column(*row) for row in rows]
    count = None if row_count is None else int(row_count)
    return _Found(login, relation, columns, int(size_bytes or 0), count, splits)


def _splits(
    run: _Run, relation: tuple[str, str], types: Mapping[str, str], size_bytes: int
) -> tuple[RemoteSplit, ...]:
    """Cut a large table evenly between the least and the largest value of its key."""
    key = run(_KEY, *relation) if size_bytes >= 2 * key_ranges.SPLIT_BYTES else []
    if not key or types.get(key[0][0]) not in _WHOLE:
        return ()
    column, table = _quoted(key[0][0]), ".".join(map(_quoted, relation))
    ((low, high),) = run(f"SELECT min({column}), max({column}) FROM {table}")
    if low is None:
        return ()
    steps = key_ranges.MOST_SPLITS * 4
    values = [low + (high - low) * number // steps for number in range(steps + 1)]
    return key_ranges.cut(key[0][0], values, size_bytes)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _not_read(request: SourceRequest, exc: Exception) -> DatasetError:
    code = exc.args[0] if exc.args else None
    if code in _AUTH:
        return DatasetError("auth", f"dataset '{request.name}': MySQL refuses the login")
    if code == _NO_DATABASE:
        return DatasetError(
            "not_found", f"dataset '{request.name}': the server has no database of this name"
        )
    return DatasetError(
        "unavailable",
        f"dataset '{request.name}': MySQL cannot be reached; check params.mysql_host, "
        "params.mysql_tcp_port and params.mysql_sslmode",
    )


def _column(
    name: str, kind: str, written: str, charset: str | None, digits: Any, scale: Any
) -> RemoteColumn:
    written = written.lower()
    if re.match(r"tinyint\(1\)(?! unsigned)", written):
        return RemoteColumn(name, pa.bool_())
    if kind in _WHOLE:
        return _whole_number(name, _WHOLE[kind], "unsigned" in written)
    if kind == "decimal":
        if int(digits) > _MOST_DIGITS:
            return RemoteColumn(name, pa.string())
        return RemoteColumn(name, pa.decimal128(int(digits), int(scale)), is_comparable=True)
    if "blob" in kind:
        return RemoteColumn(name, pa.binary())
    if (type_ := _TYPES.get(kind)) is not None:
        is_comparable = kind in ("float", "double", "date", "datetime")
        return RemoteColumn(name, type_, is_comparable)
    if kind in _COMPARABLE_TEXTS:
        return RemoteColumn(name, pa.string(), is_comparable=charset in _UNICODE)
    return RemoteColumn(name, pa.string())


def _whole_number(name: str, bits: int, is_unsigned: bool) -> RemoteColumn:
    unsigned = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
    signed = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    return RemoteColumn(name, (unsigned if is_unsigned else signed)[bits], is_comparable=True)


def _as_declared(column: RemoteColumn, type_: pa.DataType | None) -> RemoteColumn:
    if type_ is None or type_ == column.type:
        return column
    return RemoteColumn(column.name, type_, False)
