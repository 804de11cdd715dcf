"""Creates and drops tables of PostgreSQL."""

import pyarrow as pa

from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_tables import NewTable, TableCreation, TableDrop, TypeNames
from caraway_plugins.sources.postgres.writer import PostgresInsert, PostgresWrite, quoted

TYPES = TypeNames(
    {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "SMALLINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "SMALLINT",
        pa.uint16(): "INTEGER",
        pa.uint32(): "BIGINT",
        pa.uint64(): "NUMERIC(20,0)",
        pa.float32(): "REAL",
        pa.float64(): "DOUBLE PRECISION",
        pa.string(): "TEXT",
        pa.binary(): "BYTEA",
        pa.date32(): "DATE",
        pa.time64("us"): "TIME",
        pa.timestamp("us"): "TIMESTAMP",
        pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
    },
    most_digits=76,
)


class PostgresCreation(TableCreation, PostgresInsert):
    """A CREATE TABLE and the COPY of its rows, in one transaction."""

    def __init__(self, definition: TableDefinition, columns: pa.Schema) -> None:
        super().__init__(definition.table, columns)
        self._new = NewTable(definition, columns, TYPES, quoted)


class PostgresDrop(TableDrop, PostgresWrite):
    """A DROP TABLE."""
