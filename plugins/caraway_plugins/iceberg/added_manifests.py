"""Manifests of the files that a write adds to a table of others."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import fastavro

from caraway_plugins.iceberg import avro_schemas, bounds, read_schemas, transforms
from caraway_plugins.iceberg.column_types import IcebergField, NoIcebergTypeError
from caraway_plugins.iceberg.file_statistics import FileStatistics

_CODEC = "deflate"
_ADDED = 1
_BLOCK_BYTES = 64 * 1024 * 1024
"""What the first version of the format says of each file; it means nothing."""
_CONTENTS = {"data": 0, "deletes": 1}
_AVRO: Mapping[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}
Content = Literal["data", "deletes"]


@dataclass(frozen=True, slots=True)
class SpecField:
    """A value that all rows of a file share. `kind` is its type, `source` the column it is of."""

    id: int
    name: str
    source: IcebergField
    transform: str

    @property
    def kind(self) -> str:
        """The type of its values.

        Raises:
            NoIcebergTypeError: it is one that is not written here.
        """
        kind = transforms.result(self.transform, str(self.source.type))
        if kind in _AVRO or kind.startswith("decimal"):
            return kind
        raise NoIcebergTypeError(
            f"its partitions are by column '{self.source.name}' of type {kind}"
        )

    def avro(self) -> dict[str, Any]:
        """Return the field as one of Avro."""
        avro = _AVRO.get(self.kind) or _decimal(self.kind, self.id)
        return {"name": self.name, "type": ["null", avro], "default": None, "field-id": self.id}


@dataclass(frozen=True, slots=True)
class WrittenSpec:
    """A partition spec of a table."""

    id: int
    fields: tuple[SpecField, ...]
    document: Sequence[Mapping[str, Any]]
    """Its fields as JSON."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A Parquet file of data, or of the positions of deleted rows, with its partition."""

    location: str
    size_bytes: int
    statistics: FileStatistics
    partition: tuple[Any, ...] = ()


def spec(document: Mapping[str, Any], columns: Mapping[int, IcebergField]) -> WrittenSpec:
    """Return a spec of a table's metadata, given its columns by id.

    Raises:
        NoIcebergTypeError: files are not written with such partitions here.
    """
    fields = []
    for each in document["fields"]:
        source = columns.get(int(each.get("source-id", -1)))
        if source is None:
            raise NoIcebergTypeError("its partitions are by several columns, or by a dropped one")
        fields.append(
            SpecField(int(each["field-id"]), str(each["name"]), source, str(each["transform"]))
        )
        transforms.transform(fields[-1].transform)
        fields[-1].avro()
    return WrittenSpec(int(document["spec-id"]), tuple(fields), document["fields"])


def manifest(
    content: Content,
    schema: Mapping[str, object],
    written: WrittenSpec,
    snapshot_id: int,
    files: Sequence[AddedFile],
    version: int,
) -> bytes:
    """Return the manifest of files that a snapshot adds, in a version of the format.

    `schema` is that of the table as JSON.
    """
    metadata = {
        "schema": json.dumps(schema),
        "schema-id": str(schema.get("schema-id", 0)),
        "partition-spec": json.dumps(written.document),
        "partition-spec-id": str(written.id),
        "format-version": str(version),
        **({"content": content} if version > 1 else {}),
    }
    records = [_entry(content, written, snapshot_id, each) for each in files]
    out = io.BytesIO()
    fastavro.writer(
        out, avro_schemas.entry_schema(written, version), records, _CODEC, metadata=metadata
    )
    return out.getvalue()


def listed(
    content: Content,
    written: WrittenSpec,
    snapshot_id: int,
    files: Sequence[AddedFile],
    place: tuple[str, int],
) -> dict[str, Any]:
    """Return what a list says of such a manifest, which has a location and a size."""
    return {
        "manifest_path": place[0],
        "manifest_length": place[1],
        "partition_spec_id": written.id,
        "content": _CONTENTS[content],
        "added_snapshot_id": snapshot_id,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(each.statistics.row_count for each in files),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [_summary(each, [file.partition[n] for file in files])
                       for n, each in enumerate(written.fields)],
        "key_metadata": None,
    }  # fmt: skip


def _entry(
    content: Content, written: WrittenSpec, snapshot_id: int, file: AddedFile
) -> dict[str, Any]:
    statistics = file.statistics
    names = [each.name for each in written.fields]
    data_file = {
        "content": _CONTENTS[content],
        "file_path": file.location,
        "file_format": "PARQUET",
        "partition": dict(zip(names, file.partition, strict=True)),
        "record_count": statistics.row_count,
        "file_size_in_bytes": file.size_bytes,
        "block_size_in_bytes": _BLOCK_BYTES,
        "column_sizes": _pairs(statistics.column_sizes),
        "value_counts": _pairs(statistics.value_counts),
        "null_value_counts": _pairs(statistics.null_counts),
        "lower_bounds": _pairs(statistics.lower),
        "upper_bounds": _pairs(statistics.upper),
        "split_offsets": statistics.split_offsets or None,
        "sort_order_id": 0 if content == "data" else None,
    }
    return {"status": _ADDED, "snapshot_id": snapshot_id, "data_file": data_file}


def _pairs(found: Mapping[int, object]) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in found.items()] or None


def _summary(field: SpecField, values: Sequence[Any]) -> dict[str, object]:
    found = [each for each in values if each is not None]
    floating = [each for each in found if isinstance(each, float)]
    ordered = [each for each in found if not (isinstance(each, float) and math.isnan(each))]
    low, high = (min(ordered), max(ordered)) if ordered else (None, None)
    return {
        "contains_null": len(found) < len(values),
        "contains_nan": len(ordered) < len(found) if floating else None,
        "lower_bound": None if low is None else _bound(field, low, False),
        "upper_bound": None if high is None else _bound(field, high, True),
    }


def _bound(field: SpecField, value: Any, is_upper: bool) -> bytes | None:
    kind = field.kind
    if isinstance(value, str):
        value = value.encode()
    elif kind.startswith("decimal"):
        value = int(value.scaleb(int(kind[:-1].split(",")[1])))
    return bounds.packer(read_schemas.arrow_type(kind), kind)(value, is_upper)


def _decimal(kind: str, id_: int) -> dict[str, Any]:
    type_ = read_schemas.arrow_type(kind)
    size = (10**type_.precision).bit_length() // 8 + 1
    return {
        "type": "fixed",
        "size": size,
        "name": f"decimal_{type_.precision}_{type_.scale}_{id_}",
        "logicalType": "decimal",
        "precision": type_.precision,
        "scale": type_.scale,
    }
