"""Creates and drops tables of DuckDB files, and merges rows into them.

Statements of DuckDB that change one row at once fail.
"""

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.database_tables import NewTable, TableCreation, TableDrop, TypeNames
from caraway_plugins.sources.database_writes import Reason
from caraway_plugins.sources.duckdb.writer import DuckdbInsert, DuckdbWrite, quoted

_NO_SCHEMA = "Catalog Error: Schema with name"
TYPES = TypeNames(
    {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINTEGER",
        pa.uint64(): "UBIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.string(): "VARCHAR",
        pa.binary(): "BLOB",
        pa.date32(): "DATE",
        pa.time64("us"): "TIME",
        pa.timestamp("us"): "TIMESTAMP",
        pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
    },
    most_digits=38,
    has_lists=True,
)
_NUMBER = "rowid"


class DuckdbCreation(TableCreation, DuckdbInsert):
    """A CREATE TABLE and the INSERT of its rows, in one transaction."""

    def __init__(self, definition: TableDefinition, columns: pa.Schema) -> None:
        super().__init__(definition.table, columns)
        self._new = NewTable(definition, columns, TYPES, quoted)

    def _reason(self, exc: Exception) -> Reason:
        if isinstance(exc, duckdb.CatalogException) and str(exc).startswith(_NO_SCHEMA):
            return Reason("its schema does not exist; DuckDB has to create it", is_of_values=True)
        return super()._reason(exc)


class DuckdbDrop(TableDrop, DuckdbWrite):
    """A DROP TABLE."""


class DuckdbMerge(DatabaseMerge, DuckdbInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"
    types = TYPES

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])

    def _found(self, sql: str) -> bool:
        return self._connection.execute(sql).fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        if any(each.name.lower() == _NUMBER for each in self._table.columns):
            raise self._refused(f"its column '{_NUMBER}' hides the numbers of its rows")
        return (_NUMBER,)
