"""Reads rows of a table in the form of the log: texts, in the dataset's column order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg2 import extensions, sql

from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.collecting import Key
from caraway_plugins.changes.postgres.connecting import mapped

Values = tuple[str | None, ...]
PAGE_ROWS = 5_000
_KEYS_PER_STATEMENT = 1_000


def snapshot(connection: Any, table: Table, name: str) -> Iterator[Sequence[Values]]:
    """Read all rows of an exported snapshot, a page at a time. Blocks.

    Raises:
        DatasetError: the database reports an error.
    """
    with mapped(table.place), connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET TRANSACTION SNAPSHOT %s", (name,))
        cursor.execute(
            sql.SQL("DECLARE caraway_rows NO SCROLL CURSOR FOR SELECT {} FROM {}").format(
                _columns(table), _name(table)
            )
        )
        _as_texts(cursor, table)
        while True:
            cursor.execute(sql.SQL("FETCH {} FROM caraway_rows").format(sql.Literal(PAGE_ROWS)))
            rows = cursor.fetchall()
            if not rows:
                break
            yield rows
        cursor.execute("ROLLBACK")


def present(connection: Any, table: Table, keys: Sequence[Key]) -> Mapping[Key, Values]:
    """Read the current rows with these keys. Blocks.

    Raises:
        DatasetError: the database reports an error.
    """
    at = [table.schema.get_field_index(name) for name in table.key]
    found: dict[Key, Values] = {}
    with mapped(table.place), connection.cursor() as cursor:
        _as_texts(cursor, table)
        for start in range(0, len(keys), _KEYS_PER_STATEMENT):
            cursor.execute(
                sql.SQL("SELECT {} FROM {} WHERE ({}) IN %s").format(
                    _columns(table),
                    _name(table),
                    sql.SQL(", ").join(map(sql.Identifier, table.key)),
                ),
                (_in(keys[start : start + _KEYS_PER_STATEMENT]),),
            )
            for row in cursor:
                found[tuple(row[index] for index in at)] = row
    return found


def _in(keys: Sequence[Key]) -> tuple[object, ...]:
    return tuple(key[0] if len(key) == 1 else key for key in keys)


def _as_texts(cursor: Any, table: Table) -> None:
    """Make the driver return values as text, without conversion."""
    oids = tuple({column.type_oid for column in table.columns} | _BASE_OIDS)
    extensions.register_type(extensions.new_type(oids, "CARAWAY_TEXT", _same), cursor)


def _same(value: str | bytes | None, _cursor: object) -> str | bytes | None:
    return value


def _columns(table: Table) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)


def _name(table: Table) -> sql.Identifier:
    return sql.Identifier(table.place.schema, table.place.table)


# A domain value arrives with the OID of its base type. These are the base types that the driver
# would otherwise convert to Python objects.
_BASE_OIDS = frozenset(
    oid for type_ in extensions.string_types.values() for oid in type_.values if oid > 0
)
