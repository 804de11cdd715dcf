"""Datasets that are tables or views of MySQL or MariaDB: `from: mysql:TABLE`."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import MemoryTable, RemoteColumn, RemoteSplit, RemoteTable, TableSpec
from caraway_plugins.changes.mysql import looking
from caraway_plugins.sources import database_files, key_ranges
from caraway_plugins.sources.mysql import declared, describing

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
        projection=True, filters=True, limit=True, splits=True, statements=True, changes=True
    )

    def resolve(self, request: SourceRequest) -> TableSpec:
        if request.is_followed:
            return _followed(request)
        return self.read_in_place(request)

    def read_in_place(self, request: SourceRequest) -> RemoteTable:
        """Return the table as statements read it."""
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
        if request.is_followed:
            return None
        columns = _look(request).columns
        parts = [(each.name, str(each.type), each.is_comparable) for each in columns]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _followed(request: SourceRequest) -> MemoryTable:
    """Return the columns of a table that is followed, without rows."""
    asked = ChangeRequest(
        request.name, request.connector, request.path, request.params, request.declared
    )
    schema = looking.look(asked, needs_key=False).schema
    return MemoryTable(schema, schema.empty_table())


def _look(request: SourceRequest) -> _Found:
    schema, table = database_files.relation(request)
    with describing.opened(request) as (login, run):
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
    columns = [describing.column_of(*row) for row in rows]
    count = None if row_count is None else int(row_count)
    return _Found(login, relation, columns, int(size_bytes or 0), count, splits)


def _splits(
    run: describing.Run, relation: tuple[str, str], types: Mapping[str, str], size_bytes: int
) -> tuple[RemoteSplit, ...]:
    """Cut a large table evenly between the least and the largest value of its key."""
    key = run(_KEY, *relation) if size_bytes >= 2 * key_ranges.SPLIT_BYTES else []
    if not key or types.get(key[0][0]) not in describing.WHOLE:
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


def _as_declared(column: RemoteColumn, type_: pa.DataType | None) -> RemoteColumn:
    if type_ is None or type_ == column.type:
        return column
    return RemoteColumn(column.name, type_, False)
