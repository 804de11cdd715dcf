"""Reads the definition of a table from the database's catalog. These functions block."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_plugins.changes.postgres import types
from caraway_plugins.changes.postgres.connecting import ReplicatedTable, mapped

_TABLE = """
SELECT c.oid, c.relreplident::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
# The log has no generated columns. Domains are resolved to their base types.
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname, a.atttypid, a.atttypmod, a.atttypid AS oid, a.atttypmod AS modifier
    FROM pg_attribute a
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    UNION ALL
    SELECT b.attnum, b.attname, b.atttypid, b.atttypmod, t.typbasetype, t.typtypmod
    FROM base b JOIN pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
)
SELECT b.attname, b.atttypid, b.atttypmod, t.typname, b.modifier, item.typname, item.typtype::text
FROM base b JOIN pg_type t ON t.oid = b.oid
LEFT JOIN pg_type item ON item.oid = t.typelem AND t.typcategory = 'A'
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
# An index also lists the columns that it only carries (INCLUDE), after those of its key.
_KEY = """
SELECT a.attname
FROM pg_index i CROSS JOIN unnest(i.indkey::int[]) WITH ORDINALITY AS k (attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND CASE WHEN %s THEN i.indisreplident ELSE i.indisprimary END
    AND k.place <= i.indnkeyatts
ORDER BY k.place
"""
_SYSTEM = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id FROM pg_control_checkpoint())
"""


class CatalogColumn(Protocol):
    """A column that the database's catalog lists."""

    @property
    def name(self) -> str: ...


ColumnT = TypeVar("ColumnT", bound=CatalogColumn)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the dataset, with its type in the database."""

    name: str
    type_oid: int
    modifier: int
    field: pa.Field


@dataclass(frozen=True, slots=True)
class Table:
    """A table with the columns of the dataset.

    If `has_whole_old_rows`, the log holds complete old rows, not only their keys. If `takes_all`,
    every column of the table is in the dataset, and a new column changes its schema.
    """

    place: ReplicatedTable
    oid: int
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    has_whole_old_rows: bool
    takes_all: bool

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([column.field for column in self.columns])

    @property
    def shape(self) -> str:
        """A fingerprint of the columns and the key, which changes when their meaning changes."""
        parts = [(each.name, each.type_oid, each.modifier) for each in self.columns]
        text = repr((parts, [str(each.field.type) for each in self.columns], self.key))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def look(
    connection: Any,
    place: ReplicatedTable,
    declared: Sequence[pa.Field],
    primary_key: tuple[str, ...] | None,
) -> Table:
    """Look a table up; if `primary_key` is None, the key is not checked.

    Raises:
        DatasetError: the table is missing, has no key, or lacks a declared column.
    """
    with mapped(place), connection.cursor() as cursor:
        cursor.execute(_TABLE, (place.schema, place.table))
        found = cursor.fetchone()
        if found is None:
            raise DatasetError(
                "not_found", f"{place.title} is not in the database '{connection.info.dbname}'"
            )
        oid, identity = found
        cursor.execute(_COLUMNS, (oid,))
        columns = [_column(row) for row in cursor.fetchall()]
        cursor.execute(_KEY, (oid, identity == "i"))
        key = tuple(row[0] for row in cursor.fetchall())
    chosen = tuple(columns)
    if declared:
        chosen = tuple(
            TableColumn(column.name, column.type_oid, column.modifier, field)
            for column, field in chosen_columns(place.title, columns, declared)
        )
    if primary_key is not None:
        key = _key(place, identity, key, primary_key, {each.name for each in chosen})
    return Table(place, oid, chosen, key, identity == "f", not declared)


def system(connection: Any, place: ReplicatedTable) -> str:
    """Identify the history of the log by server and timeline; positions are valid only in it."""
    with mapped(place), connection.cursor() as cursor:
        cursor.execute(_SYSTEM)
        identifier, timeline = cursor.fetchone()
        return f"{identifier}/{timeline}"


def _column(row: Sequence[Any]) -> TableColumn:
    name, oid, modifier, type_name, base_modifier, item, item_kind = row
    if item is None:
        type_ = types.arrow_type(type_name, base_modifier)
    else:
        # For arrays of a domain, only the text of the items is known.
        type_ = pa.list_(pa.string() if item_kind == "d" else types.arrow_type(item, base_modifier))
    return TableColumn(name, oid, modifier, pa.field(name, type_))


def chosen_columns(
    title: str, columns: Sequence[ColumnT], declared: Sequence[pa.Field]
) -> Sequence[tuple[ColumnT, pa.Field]]:
    """Return each declared field with the column of the table that has its name.

    Raises:
        DatasetError: the table, which is called `title`, has no such column.
    """
    known = {column.name: column for column in columns}
    for wanted in declared:
        if wanted.name not in known:
            said = registry.unknown("column", wanted.name, dict.fromkeys(known, ""))
            raise DatasetError("schema", f"{title}: {said}")
    return [(known[each.name], each) for each in declared]


def _key(
    place: ReplicatedTable,
    identity: str,
    found: tuple[str, ...],
    declared: tuple[str, ...],
    columns: set[str],
) -> tuple[str, ...]:
    """Return the key columns, and check that the log has them for deleted rows."""
    key = declared or found
    if identity == "n" or (identity != "f" and not found):
        raise DatasetError(
            "invalid",
            f"{place.title} has no replica identity, so the log does not identify rows; add a "
            f"primary key, or run: ALTER TABLE {place.quoted} REPLICA IDENTITY FULL",
        )
    if not key:
        raise DatasetError(
            "invalid", f"{place.title} has no primary key; set the dataset's 'primary_key'"
        )
    if missing := [name for name in key if name not in columns]:
        raise DatasetError(
            "schema", f"{place.title}: the key column '{missing[0]}' is missing in the dataset"
        )
    if identity != "f" and set(key) != set(found):
        raise DatasetError(
            "invalid",
            f"{place.title}: 'primary_key' is ({', '.join(key)}), but the log identifies rows by "
            f"({', '.join(found)}); use that, or run: ALTER TABLE {place.quoted} "
            "REPLICA IDENTITY FULL",
        )
    return key
