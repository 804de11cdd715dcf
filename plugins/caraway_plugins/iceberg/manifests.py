"""Manifests and manifest lists: the files of a snapshot, in Avro."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro

from caraway_plugins.iceberg import avro_bytes, avro_schemas
from caraway_plugins.iceberg.column_types import IcebergSchema
from caraway_plugins.iceberg.file_statistics import FileStatistics
from caraway_plugins.iceberg.partitioning import PartitionSpec

MOST_FILES = 5_000
"""Of one manifest. Clients read manifests in parallel, and skip those of other partitions."""
_CODEC = "deflate"
_FORMAT = 2
_EXISTING = 0
_ADDED = 1
_DATA = avro_bytes.long(0)
_PARQUET = avro_bytes.text("PARQUET")


@dataclass(frozen=True, slots=True)
class AddedBy:
    """The snapshot that added a file to a table, and its sequence number."""

    snapshot_id: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table. `location` is where clients open it.

    A file without `added_by` is added by the snapshot that is written.
    """

    location: str
    size_bytes: int
    statistics: FileStatistics
    partition: Mapping[str, Any] = field(default_factory=dict)
    added_by: AddedBy | None = None


@dataclass(frozen=True, slots=True)
class FileTotals:
    """How many files there are, with how many rows and bytes."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def count_files(cls, files: Iterable[DataFile]) -> FileTotals:
        """Count files."""
        data_files = list(files)
        rows = sum(each.statistics.row_count for each in data_files)
        return cls(len(data_files), rows, sum(each.size_bytes for each in data_files))


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """The bytes of a manifest, and what a manifest list says of it.

    `first_sequence_number` is the lowest one of the files that other snapshots added.
    """

    content: bytes
    added: FileTotals
    existing: FileTotals
    partitions: Sequence[Mapping[str, Any]]
    first_sequence_number: int | None = None


def manifest(
    schema: IcebergSchema, spec: PartitionSpec, snapshot_id: int, files: Sequence[DataFile]
) -> WrittenManifest:
    """Return the manifest of some files."""
    metadata = {
        "schema": json.dumps(schema.document()),
        "schema-id": str(schema.id),
        "partition-spec": json.dumps(spec.document()["fields"]),
        "partition-spec-id": "0",
        "format-version": str(_FORMAT),
        "content": "data",
    }
    added = b"".join((
        avro_bytes.long(_ADDED),
        avro_bytes.SOME,
        avro_bytes.long(snapshot_id),
        avro_bytes.NULL,  # sequence numbers: those of the list
        avro_bytes.NULL,
    ))  # fmt: skip
    records = (
        (added if each.added_by is None else _existing(each.added_by)) + _entry(each, spec)
        for each in files
    )
    content = avro_bytes.container(avro_schemas.entry_schema(spec, _FORMAT), metadata, records)
    summaries = [_summary(spec, number, files) for number, _ in enumerate(spec.fields)]
    known = [each.added_by.sequence_number for each in files if each.added_by is not None]
    return WrittenManifest(
        content,
        FileTotals.count_files(each for each in files if each.added_by is None),
        FileTotals.count_files(each for each in files if each.added_by is not None),
        summaries,
        min(known, default=None),
    )


def manifest_list(
    snapshot_id: int,
    sequence_number: int,
    written: Sequence[tuple[str, WrittenManifest]],
    parent_id: int | None = None,
) -> bytes:
    """Return the list of a snapshot's manifests, each with its location."""
    out = io.BytesIO()
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        "sequence-number": str(sequence_number),
        "format-version": str(_FORMAT),
    }
    records = (_listed(location, each, snapshot_id, sequence_number) for location, each in written)
    fastavro.writer(out, avro_schemas.LIST_SCHEMAS[_FORMAT], records, _CODEC, metadata=metadata)
    return out.getvalue()


def _existing(by: AddedBy) -> bytes:
    """Return the first fields of an entry that another snapshot added."""
    sequence_number = avro_bytes.SOME + avro_bytes.long(by.sequence_number)
    snapshot = avro_bytes.SOME + avro_bytes.long(by.snapshot_id)
    return avro_bytes.long(_EXISTING) + snapshot + sequence_number + sequence_number


def _entry(file: DataFile, spec: PartitionSpec) -> bytes:
    """Return the data file of an entry, with the fields in the order of their schema."""
    statistics = file.statistics
    return b"".join((
        _DATA,
        avro_bytes.text(file.location),
        _PARQUET,
        spec.record(file.partition),
        avro_bytes.long(statistics.row_count),
        avro_bytes.long(file.size_bytes),
        avro_bytes.longs_by_id(statistics.column_sizes),
        avro_bytes.longs_by_id(statistics.value_counts),
        avro_bytes.longs_by_id(statistics.null_counts),
        avro_bytes.NULL,
        avro_bytes.bytes_by_id(statistics.lower),
        avro_bytes.bytes_by_id(statistics.upper),
        avro_bytes.NULL,
        avro_bytes.longs(statistics.split_offsets),
        avro_bytes.NULL,
        avro_bytes.SOME + avro_bytes.long(0),
    ))  # fmt: skip


def _listed(
    location: str, written: WrittenManifest, snapshot_id: int, sequence_number: int
) -> dict[str, Any]:
    return {
        "manifest_path": location,
        "manifest_length": len(written.content),
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": sequence_number,
        "min_sequence_number": written.first_sequence_number or sequence_number,
        "added_snapshot_id": snapshot_id,
        "added_files_count": written.added.files,
        "existing_files_count": written.existing.files,
        "deleted_files_count": 0,
        "added_rows_count": written.added.rows,
        "existing_rows_count": written.existing.rows,
        "deleted_rows_count": 0,
        "partitions": written.partitions,
        "key_metadata": None,
    }


def _summary(spec: PartitionSpec, number: int, files: Sequence[DataFile]) -> dict[str, Any]:
    field_ = spec.fields[number]
    values = [each.partition[field_.source.name] for each in files]
    known = [each for each in values if each is not None]
    return {
        "contains_null": len(known) < len(values),
        "contains_nan": None,
        "lower_bound": field_.bound(min(known), False) if known else None,
        "upper_bound": field_.bound(max(known), True) if known else None,
    }
