"""Files that a statement adds to a table: its rows, by partition, and positions of deleted ones."""

from __future__ import annotations

import io
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caraway_core.errors import DatasetError
from caraway_plugins.iceberg import column_types, read_manifests, transforms
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.iceberg.file_statistics import FileStatistics, FooterReader
from caraway_plugins.sources.iceberg.locations import TableFiles
from caraway_plugins.sources.iceberg.writing import written

_BUFFERED_BYTES = 128 * 1024 * 1024
"""Rows wait for more of their partition, up to this."""
_GROUP_ROWS = 1024 * 1024
_CODEC = "zstd"
_FLOATS = ("float", "double")
_POSITION_ID = 2147483545
_MOST_OWN_ID = 2147483447
"""The most that the ids of a table's own columns can be."""
_PATH = pa.field(
    "file_path", pa.string(), False, {b"PARQUET:field_id": str(read_manifests.PATH_ID).encode()}
)
_PLACE = pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": str(_POSITION_ID).encode()})
Partition = tuple[Any, ...]


class TablePlace:
    """A folder in which files of a table are made, and deleted again if a write fails."""

    def __init__(self, files: TableFiles, folder: str) -> None:
        self._files, self._folder = files, folder
        self._made: list[str] = []

    def write(self, content: BinaryIO, name: str) -> str:
        """Make a file, and return its location.

        Raises:
            DatasetError: it cannot be written.
        """
        location = f"{self._folder}/{name}"
        self._made.append(location)
        self._files.place(location).write(content)
        return location

    def delete_files(self) -> None:
        """Delete the files that were made; those that cannot be deleted stay."""
        for location in list(self._made):
            self.delete_file(location)

    def delete_file(self, location: str) -> None:
        """Delete a file that was made, if that is possible."""
        self._made.remove(location)
        place = self._files.place(location)
        with suppress(DatasetError):
            place.storage.delete(place.path)


class RowFiles:
    """Writes rows into Parquet files, each of one partition."""

    def __init__(self, place: TablePlace, schema: IcebergSchema, spec: WrittenSpec) -> None:
        self._place, self._spec = place, spec
        self._columns = pa.schema(
            column_types.numbered(field, column)
            for field, column in zip(schema.fields, written.columns(schema).types, strict=True)
        )
        self._fields = schema.fields
        measured = tuple(each for each in schema.fields if _is_measured(each))
        self._footers = FooterReader(IcebergSchema(measured))
        self._waiting: dict[Partition, list[pa.RecordBatch]] = defaultdict(list)
        self._sizes: dict[Partition, int] = defaultdict(int)
        self._files: list[AddedFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, whose columns are those of the table.

        Raises:
            DatasetError: a file cannot be written.
        """
        for partition, rows in self._divided(batch):
            self._waiting[partition].append(rows)
            self._sizes[partition] += rows.nbytes
        while sum(self._sizes.values()) > _BUFFERED_BYTES:
            self._write(max(self._sizes, key=lambda each: self._sizes[each]))

    def finish(self) -> Sequence[AddedFile]:
        """Write the rows that wait, and return all files.

        Raises:
            DatasetError: a file cannot be written.
        """
        for partition in list(self._waiting):
            self._write(partition)
        return self._files

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        if not self._spec.fields:
            yield (), batch
            return
        values = [
            transforms.transform(each.transform)(batch.column(each.source.name))
            for each in self._spec.fields
        ]
        codes = np.zeros(batch.num_rows, np.int64)
        for each in values:
            encoded = each.dictionary_encode("encode")
            own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            # Places instead of products stay small for any number of columns.
            _, codes = np.unique(codes * len(encoded.dictionary) + own, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            partition = tuple(each[int(rows[0])].as_py() for each in values)
            yield partition, batch.take(pa.array(rows))

    def _write(self, partition: Partition) -> None:
        self._sizes.pop(partition)
        batches = self._waiting.pop(partition)
        table = pa.Table.from_batches([each.cast(self._columns) for each in batches])
        with tempfile.TemporaryFile() as file:
            pq.write_table(
                table, file, _GROUP_ROWS, compression=_CODEC, store_schema=False,
            )  # fmt: skip
            size = file.tell()
            file.seek(0)
            statistics = self._footers.read(pq.read_metadata(file))
            for field in self._fields:
                if _may_have_nan(field, table.column(field.name)):
                    _drop_bounds(statistics, field)
            file.seek(0)
            location = self._place.write(file, f"{uuid.uuid4()}.parquet")
        self._files.append(AddedFile(location, size, statistics, partition))


def write_positions(
    place: TablePlace, location: str, positions: np.ndarray, partition: Partition
) -> AddedFile:
    """Write the positions of the rows of a data file that are deleted, in their order.

    Raises:
        DatasetError: the file cannot be written.
    """
    columns = [pa.repeat(pa.scalar(location), len(positions)), pa.array(positions)]
    table = pa.Table.from_arrays(columns, schema=pa.schema([_PATH, _PLACE]))
    out = io.BytesIO()
    pq.write_table(table, out, compression=_CODEC, store_schema=False)
    size = out.tell()
    out.seek(0)
    own = place.write(out, f"{uuid.uuid4()}-deletes.parquet")
    path = location.encode()
    bounds = [int(each).to_bytes(8, "little") for each in (positions[0], positions[-1])]
    statistics = FileStatistics(
        len(positions),
        # Whole paths say that the positions are of one file alone.
        lower={read_manifests.PATH_ID: path, _POSITION_ID: bounds[0]},
        upper={read_manifests.PATH_ID: path, _POSITION_ID: bounds[1]},
    )
    return AddedFile(own, size, statistics, tuple(map(transforms.physical, partition)))


def _may_have_nan(field: IcebergField, values: pa.ChunkedArray) -> bool:
    """Return whether values may be NaN, which bounds leave out, and some readers look for there."""
    if field.type in _FLOATS:
        return bool(pc.any(pc.is_nan(values)).as_py())
    return any(each.type in _FLOATS for each in _inside(field))


def _drop_bounds(statistics: FileStatistics, field: IcebergField) -> None:
    for each in (field, *_inside(field)):
        if each.type in _FLOATS:
            statistics.lower.pop(each.id, None)
            statistics.upper.pop(each.id, None)


def _inside(field: IcebergField) -> Iterator[IcebergField]:
    for each in field.inner:
        yield each
        yield from _inside(each)


def _is_measured(field: IcebergField) -> bool:
    return field.id <= _MOST_OWN_ID and not _has_uuid(field)


def _has_uuid(field: IcebergField) -> bool:
    return field.type == "uuid" or any(map(_has_uuid, field.inner))
