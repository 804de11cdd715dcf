"""Creates and drops tables of SQLite files, and merges rows into them.

One statement writes a file at a time.
"""

from collections.abc import Sequence

import pyarrow as pa

from caraway_core.protocols.remote import TABLE_ALIAS
from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.database_tables import NewTable, TableCreation, TableDrop, TypeNames
from caraway_plugins.sources.sqlite.writer import KEY, SqliteInsert, SqliteWrite, quoted

TYPES = TypeNames(
    {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT4",
        pa.int64(): "BIGINT",
        pa.uint8(): "SMALLINT",
        pa.uint16(): "INT4",
        pa.uint32(): "BIGINT",
        pa.float32(): "DOUBLE",
        pa.float64(): "DOUBLE",
        pa.string(): "TEXT",
        pa.binary(): "BLOB",
        pa.date32(): "DATE",
        pa.time64("us"): "TIME",
        pa.timestamp("us"): "TIMESTAMP",
        pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
    },
    most_digits=15,
)
"""Decimals of more digits would be doubles there."""


class SqliteCreation(TableCreation, SqliteInsert):
    """A CREATE TABLE and the INSERT of its rows, in one transaction."""

    def __init__(self, definition: TableDefinition, columns: pa.Schema) -> None:
        super().__init__(definition.table, columns)
        self._new = NewTable(definition, columns, TYPES, quoted)


class SqliteDrop(TableDrop, SqliteWrite):
    """A DROP TABLE."""


class SqliteMerge(DatabaseMerge, SqliteInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"
    types = TYPES
    same = "{} COLLATE BINARY"
    _number = ""

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.execute("SELECT changes()")
            return int(cursor.fetchone()[0])

    def _found(self, sql: str) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        return (self._number,)

    def _read(self) -> tuple[str, str]:
        self._number, view = self._shown()
        table = (
            f"{self._target} k JOIN {view} {TABLE_ALIAS} ON {TABLE_ALIAS}.{KEY} = k.{self._number}"
        )
        return table, "k"
