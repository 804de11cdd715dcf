"""Runs statements over DuckDB files, each of which is attached only while it is read."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_rows import TOO_LARGE, DatabaseRows
from caraway_plugins.sources.duckdb.attached import FileStatement
from caraway_plugins.sources.endless_times import has_endless
from caraway_plugins.sources.writing_reader import DatabaseWriters, WritingReader

_BATCH_ROWS = 64 * 1024


class DuckdbReader(WritingReader):
    """Reads tables of any number of files."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "DuckdbRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return DuckdbRows(table, sql, schema)

    def _writers(self) -> DatabaseWriters:
        from caraway_plugins.sources.duckdb.creator import DuckdbCreation, DuckdbDrop, DuckdbMerge
        from caraway_plugins.sources.duckdb.writer import DuckdbChange, DuckdbInsert

        return DatabaseWriters(DuckdbInsert, DuckdbChange, DuckdbMerge, DuckdbCreation, DuckdbDrop)


class DuckdbRows(FileStatement, DatabaseRows):
    """The rows of a statement, read in batches."""

    failures = (duckdb.Error, pa.ArrowException, OSError)
    advice = "run the query again"

    def _begin(self) -> Iterator[object]:
        connection = self._attach()
        connection.execute(self._sql)
        return iter(connection.to_arrow_reader(_BATCH_ROWS))

    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        if has_endless(values):
            raise ValueError("infinity")
        return values if values.type == type_ else pc.cast(values, type_)

    def _overflow(self, exc: Exception) -> str | None:
        is_overflow = isinstance(exc, duckdb.ConversionException | duckdb.OutOfRangeException)
        return TOO_LARGE if is_overflow else None

    def _reason(self, exc: Exception) -> str:
        if isinstance(exc, duckdb.IOException):
            return "its file is away, or another process writes to it"
        if isinstance(exc, duckdb.CatalogException | duckdb.BinderException):
            return "it is not what it was when it was loaded"
        if isinstance(exc, duckdb.OutOfMemoryException):
            return "DuckDB needs more than 1 GB for it"
        return "DuckDB failed"
