"""Creates and drops tables of PostgreSQL, and merges rows into them.

All versions are served; MERGE is there since version 15 only.
"""

from collections.abc import Sequence

import pyarrow as pa

from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_merges import DatabaseMerge
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


class PostgresMerge(DatabaseMerge, PostgresInsert):
    """A MERGE while others only read the table."""

    temporary = "caraway_rows"
    types = TYPES
    create = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS {}"

    def _lock(self) -> None:
        self._run(f"LOCK TABLE {self._target} IN SHARE ROW EXCLUSIVE MODE")
        self._run(f"ANALYZE {self.temporary}")

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return int(cursor.rowcount)

    def _found(self, sql: str) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        # The second one is that of a row of one part of a table.
        return ("tableoid", "ctid")
