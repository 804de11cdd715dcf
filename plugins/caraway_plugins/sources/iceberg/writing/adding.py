"""The base of statements that write rows, and rows that are added to a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from caraway_core.errors import DatasetError, ExecutionError
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.sources.iceberg.writing import required
from caraway_plugins.sources.iceberg.writing.commits import SnapshotWrite
from caraway_plugins.sources.iceberg.writing.row_files import RowFiles


class WritingStatement(ABC):
    """A statement that writes rows; see `RemoteInsert`."""

    def __init__(self, title: str, nothing: str) -> None:
        self._title, self._nothing = title, nothing
        self._is_closed = False

    def close(self) -> None:
        """Have the next rows end the statement, if it runs."""
        self._is_closed = True

    def _given(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            if self._is_closed:
                raise ExecutionError(f"the statement was stopped; {self._nothing}")
            if batch.num_rows:
                yield batch

    def _write_rows(self, write: SnapshotWrite, batches: Iterator[pa.RecordBatch]) -> int:
        """Write rows into files, and commit them; a failure deletes the files again."""
        try:
            return self._written(write, batches)
        except BaseException as exc:
            write.discard()
            if isinstance(exc, DatasetError):
                raise write.failed(exc.message) from exc
            raise

    @abstractmethod
    def _written(self, write: SnapshotWrite, batches: Iterator[pa.RecordBatch]) -> int:
        """Write the rows, commit them, and return their number."""


class AddedRows:
    """Rows that are added to a table, and are checked before."""

    def __init__(self, write: SnapshotWrite, more: tuple[IcebergField, ...] = ()) -> None:
        """Take the write, and columns that files have beyond those of the table."""
        self._write = write
        self._schema = IcebergSchema((*write.opened.metadata.schema().fields, *more))
        self._spec = write.spec()
        self._required = required.required_fields(write.schema_document())
        self._files = RowFiles(write.data, self._schema, self._spec)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows with all columns of the files."""
        if (path := required.missing(batch, self._schema, self._required)) is not None:
            raise self._write.refused(f"column '{path}' takes no NULL")
        self._files.add(batch)

    def finish(self) -> list[tuple[WrittenSpec, list[AddedFile]]]:
        """Return the files with their spec; none where there are no rows."""
        files = list(self._files.finish())
        return [(self._spec, files)] if files else []
