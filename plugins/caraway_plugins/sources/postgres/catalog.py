"""Reads the definition of a table or view that is queried in PostgreSQL."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.tables import RemoteColumn, RemoteSplit
from caraway_plugins.changes.postgres import types
from caraway_plugins.changes.postgres.catalog import chosen_columns
from caraway_plugins.changes.postgres.connecting import ReplicatedTable, mapped
from caraway_plugins.sources import key_ranges

_TABLE = """
SELECT c.oid, pg_table_size(c.oid), current_setting('server_encoding'), c.reltuples::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
# Domains are resolved to their base types. A nondeterministic collation treats different strings as
# equal.
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname, a.atttypid AS oid, a.atttypmod AS modifier, a.attcollation,
           false AS is_domain
    FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, b.attname, t.typbasetype, t.typtypmod, b.attcollation, true
    FROM base b JOIN pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
)
SELECT b.attname, t.typname, b.modifier, item.typname, b.is_domain,
       coalesce(c.collisdeterministic, true)
FROM base b JOIN pg_type t ON t.oid = b.oid
LEFT JOIN pg_type item ON item.oid = t.typelem AND t.typcategory = 'A'
LEFT JOIN pg_collation c ON c.oid = b.attcollation
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
_KEY = """
SELECT a.attname, s.histogram_bounds::text
FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1
  AND t.typname IN ('int2', 'int4', 'int8') AND s.histogram_bounds IS NOT NULL
ORDER BY i.indisprimary DESC, a.attnum LIMIT 1
"""
_NATIVE = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "name",
     "bytea", "date", "time", "timestamp", "timestamptz"}
)  # fmt: skip
"""Types that the driver converts to an Arrow type; it returns all others as text."""
_COMPARABLE = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "date",
     "timestamp", "timestamptz"}
)  # fmt: skip
"""Types that PostgreSQL compares like Arrow; not `char(n)`, which ignores trailing blanks."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table in the database: its columns, its size and its splits."""

    columns: tuple[RemoteColumn, ...]
    size_bytes: int
    splits: tuple[RemoteSplit, ...]
    row_count: int | None
    """An estimate of the database's statistics; None: it has none, as of a view."""

    @property
    def shape(self) -> str:
        """A fingerprint of the columns, which changes when they change."""
        parts = [(each.name, str(each.type), each.is_comparable) for each in self.columns]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def look(connection: Any, place: ReplicatedTable, declared: Sequence[pa.Field]) -> FoundTable:
    """Look a table or view up.

    Raises:
        DatasetError: it does not exist, or lacks a declared column.
    """
    with mapped(place), connection.cursor() as cursor:
        cursor.execute(_TABLE, (place.schema, place.table))
        found = cursor.fetchone()
        if found is None:
            raise DatasetError(
                "not_found", f"{place.title} is not in the database '{connection.info.dbname}'"
            )
        oid, size_bytes, encoding, estimate = found
        cursor.execute(_COLUMNS, (oid,))
        columns = [_column(row, encoding == "UTF8") for row in cursor.fetchall()]
        cursor.execute(_KEY, (oid,))
        key = cursor.fetchone()
    chosen = tuple(columns)
    if declared:
        chosen = tuple(
            _as_declared(column, field.type)
            for column, field in chosen_columns(place.title, columns, declared)
        )
    if not chosen:
        raise DatasetError("schema", f"{place.title} has no columns")
    splits = key_ranges.cut(key[0], _values(key[1]), int(size_bytes)) if key else ()
    # Before version 14 a table that was never analysed has 0 rows, as one without rows has.
    row_count = int(estimate) if estimate > 0 else None
    return FoundTable(chosen, int(size_bytes), splits, row_count)


def _column(row: Sequence[Any], is_unicode: bool) -> RemoteColumn:
    name, type_name, modifier, item, is_domain, is_deterministic = row
    if item is not None:
        type_ = pa.list_(types.arrow_type(item, modifier))
        return RemoteColumn(name, type_, is_text=is_domain or item not in _NATIVE)
    type_ = types.arrow_type(type_name, modifier)
    is_comparable = type_name in _COMPARABLE and not is_domain
    if pa.types.is_string(type_):
        is_comparable = is_comparable and is_deterministic and is_unicode
    if type_name == "numeric" and modifier < 4:
        # Arrow keeps at most 20 digits after the point here, PostgreSQL any number.
        is_comparable = False
    return RemoteColumn(name, type_, is_comparable, is_domain or type_name not in _NATIVE)


def _as_declared(column: RemoteColumn, type_: pa.DataType) -> RemoteColumn:
    if type_ == column.type:
        return column
    return RemoteColumn(column.name, type_, False, column.is_text or pa.types.is_string(type_))


def _values(bounds: str) -> list[int]:
    """Return the bounds of a histogram, between which are about as many rows each."""
    return [int(each) for each in bounds.strip("{}").split(",")]
