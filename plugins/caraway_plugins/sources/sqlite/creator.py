"""Creates and drops tables of SQLite files."""

import pyarrow as pa

from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_tables import NewTable, TableCreation, TableDrop, TypeNames
from caraway_plugins.sources.sqlite.writer import SqliteInsert, SqliteWrite, quoted

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
