"""Tables of Iceberg whose files the engine cannot read by itself, and how they are read.

Their rows are deleted by other files, or their columns have other shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from caraway_core.errors import DatasetError, QueryError
from caraway_core.protocols.remote import FILE, POSITION
from caraway_core.tables import RemoteTable, TableSpec, scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.iceberg.column_types import IcebergField
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.sources.iceberg import bounds, deletes, reading
from caraway_plugins.sources.iceberg.data_files import DeleteFile, IcebergFile
from caraway_plugins.sources.iceberg.reading import Columns, FileReader


@dataclass(frozen=True, slots=True)
class IcebergTable(TableSpec):
    """A snapshot of a table. `dropped` are columns that it had, and that its deletes compare."""

    schema: pa.Schema
    fields: tuple[IcebergField, ...]
    files: tuple[IcebergFile, ...] = field(repr=False)
    dropped: tuple[IcebergField, ...] = ()

    @property
    def splits(self) -> Sequence[IcebergFile]:
        return self.files

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)

    @property
    def row_count(self) -> int | None:
        """The rows of its files; an estimate where some of them are deleted."""
        return sum(each.row_count for each in self.files)

    @property
    def why_no_insert(self) -> str:
        return self.why_unchangeable

    @property
    def why_unchangeable(self) -> str:
        return "it is a table of Iceberg that is only read; change it where it is written"


@dataclass(frozen=True, slots=True)
class WrittenIcebergTable(IcebergTable):
    """A snapshot of a table that a plug-in writes to."""

    writer: RemoteTable | None = None

    @classmethod
    def of_table(cls, table: IcebergTable, writer: RemoteTable) -> WrittenIcebergTable:
        """Return a table with the one for its writer."""
        return cls(table.schema, table.fields, table.files, table.dropped, writer)

    @property
    def written(self) -> RemoteTable | None:
        return self.writer

    @property
    def why_unchangeable(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PlacedIcebergTable(IcebergTable):
    """A snapshot whose rows have their places, in the columns `FILE` and `POSITION`.

    `listed` has what manifests say of each file. It stays in the process that made it.
    """

    snapshot_id: int | None = None
    listed: Mapping[str, ListedFile] = field(default_factory=dict, repr=False)


class IcebergScanner:
    """Reads tables that the engine cannot read by itself."""

    def scan(self, table: IcebergTable, request: RowRequest) -> _Rows:
        """Return the rows of a table, or of some of its files."""
        return _Rows(table, request)


class _Rows:
    """Opens one file after the other, in the thread that reads."""

    def __init__(self, table: IcebergTable, request: RowRequest) -> None:
        chosen = {each.name for each in request.splits}
        files = [each for each in table.files if not chosen or each.name in chosen]
        self._table, self._request = table, request
        self._files = bounds.kept(files, request.filters, table.fields)
        self._left = None if request.filters else request.limit
        self._reader = FileReader((*table.fields, *table.dropped))
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for file in self._files:
                for batch in self._of_file(file):
                    if self._is_over:
                        return
                    yield self._limited(batch)
        except DatasetError as exc:
            raise QueryError(f"a file of the Iceberg table cannot be read: {exc.message}") from exc
        except (pa.ArrowException, OSError) as exc:
            message = "a file of the Iceberg table is gone or damaged; run the query again"
            raise QueryError(message) from exc

    def close(self) -> None:
        self._is_closed = True

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._left == 0

    def _limited(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._left is None:
            return batch
        batch = batch.slice(0, self._left)
        self._left -= batch.num_rows
        return batch

    def _of_file(self, file: IcebergFile) -> Iterator[pa.RecordBatch]:
        values = [self._reader.values(group) for group in _by_ids(file.deletes)]
        positions = [
            self._reader.positions(each, file.location) for each in file.deletes if not each.ids
        ]
        ids = self._ids(frozenset(id_ for each in values for id_ in each.ids))
        start = 0
        with reading.opened(file.path, file.size_bytes, file.store) as opened:
            for count, columns in self._reader.batches(opened, file.columns, file.constants, ids):
                masks = [deletes.kept_by_position(start, count, positions)]
                masks += [each.kept(columns) for each in values]
                rows = _Batch(file.location, start, count, columns, deletes.both(masks))
                start += count
                yield self._as_requested(rows)

    def _ids(self, compared: frozenset[int]) -> list[int]:
        """Return the columns to read of a file: those of the request, and those of its deletes."""
        names = set(self._request.columns)
        own = [each.id for each in self._table.fields if each.name in names or each.id in compared]
        return own + [each.id for each in self._table.dropped if each.id in compared]

    def _as_requested(self, rows: _Batch) -> pa.RecordBatch:
        by_name = {each.name: rows.columns.get(each.id) for each in self._table.fields}
        schema = pa.schema([self._table.schema.field(name) for name in self._request.columns])
        columns = []
        for each in schema:
            values = by_name.get(each.name)
            if values is None and isinstance(self._table, PlacedIcebergTable):
                values = rows.place(each.name)
            if values is None:  # A declared column may be in no file.
                values = pa.nulls(rows.count, each.type)
            columns.append(values.cast(each.type))
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        return batch if rows.kept is None else batch.filter(pa.array(rows.kept))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of a file from a position on, and which of them are not deleted; None: all."""

    location: str
    start: int
    count: int
    columns: Columns
    kept: np.ndarray | None

    def place(self, name: str) -> pa.Array | None:
        """Return a column of places; None: it is none."""
        if name == FILE:
            return pa.repeat(pa.scalar(self.location), self.count)
        if name == POSITION:
            return pa.array(np.arange(self.start, self.start + self.count))
        return None


def _by_ids(files: Sequence[DeleteFile]) -> list[list[DeleteFile]]:
    """Return the files of deleted values, those with the same columns together."""
    groups: dict[tuple[int, ...], list[DeleteFile]] = {}
    for each in files:
        if each.ids:
            groups.setdefault(each.ids, []).append(each)
    return list(groups.values())


# To unpickle a table imports this module, so every process that gets one has the scanner.
for _kind in (IcebergTable, WrittenIcebergTable, PlacedIcebergTable):
    scanners.register(_kind, IcebergScanner())
