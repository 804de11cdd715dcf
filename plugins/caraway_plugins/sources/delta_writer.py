"""Adds rows to Delta Lake tables, by one commit for each INSERT."""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from caraway_core.protocols.remote import TableChange, TableMerge
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import delta_commits
from caraway_plugins.sources.delta_changes import DeltaChange
from caraway_plugins.sources.delta_commits import (
    DeltaWrite,
    RowsForLibrary,
    has_empty,
    schema_of,
    text_keys,
)
from caraway_plugins.sources.delta_merges import DeltaMerge


class DeltaWriter:
    """Writes to tables; see `RemoteMerger`. The engine reads their files itself."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> "DeltaInsert":
        """Return an INSERT of rows."""
        return DeltaInsert(table, columns)

    def change(self, table: RemoteTable, change: TableChange) -> DeltaChange:
        """Return an UPDATE or DELETE.

        Raises:
            InvalidQueryError: the library would set other values.
        """
        return DeltaChange(table, change)

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> DeltaMerge:
        """Return a MERGE of rows."""
        return DeltaMerge(table, columns, merge)

    def find_commit(self, table: RemoteTable, mark: str) -> int | None:
        """See `CommitLookup`."""
        return delta_commits.find_commit(table, mark)


class DeltaInsert(DeltaWrite):
    """An INSERT into one table; see `RemoteInsert`."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        """Take the columns of the rows; others get NULL."""
        super().__init__(table)
        self._columns = columns

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write the rows as files, and commit them."""
        table = self._opened()
        schema, keys = schema_of(table), text_keys(table)
        if unknown := set(self._columns.names) - set(schema.names):
            raise self._refused(f"the table no longer has the column '{min(unknown)}'")
        given = RowsForLibrary(rows, lambda batch: self._whole(batch, schema, keys))
        batches = iter(given)
        first = next(batches, None)
        if first is None:
            return 0
        data = pa.RecordBatchReader.from_batches(schema, chain([first], batches))

        def write(properties: object) -> dict[str, object]:
            write_deltalake(table, data, mode="append", commit_properties=properties)
            return {}

        self._committed(table, write, given)
        return given.count

    def _whole(
        self, batch: pa.RecordBatch, schema: pa.Schema, keys: frozenset[str]
    ) -> pa.RecordBatch:
        """Return rows with all columns of the table."""
        self._check_running()
        arrays = []
        for field in schema:
            if field.name in self._columns.names:
                array = self._fitting(batch.column(field.name), field)
            else:
                array = pa.nulls(batch.num_rows, field.type)
            if array.null_count and not field.nullable:
                raise self._refused(f"column '{field.name}' takes no NULL")
            if field.name in keys and has_empty(array):
                raise self._refused_empty(field.name)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fitting(self, array: pa.Array, field: pa.Field) -> pa.Array:
        if array.type == field.type:
            return array
        try:
            return pc.cast(array, field.type)
        except pa.ArrowException as exc:
            raise self._refused(f"a value for column '{field.name}' is not a {field.type}") from exc
