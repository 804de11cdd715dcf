"""Table metadata: what a client reads first of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.iceberg.partitioning import PartitionSpec

NAME_MAPPING = "schema.name-mapping.default"
SEQUENCE_NUMBER = 1
"""Of the only snapshot that metadata has: rows of earlier ones may be gone from their storage."""


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The rows of a table at one moment. `manifest_list` is the location of their list."""

    id: int
    timestamp_ms: int
    manifest_list: str
    file_count: int
    row_count: int
    size_bytes: int

    def document(self) -> dict[str, Any]:
        """Return the snapshot as JSON."""
        summary = {
            "operation": "append",
            "added-data-files": str(self.file_count),
            "added-records": str(self.row_count),
            "added-files-size": str(self.size_bytes),
            "total-data-files": str(self.file_count),
            "total-records": str(self.row_count),
            "total-files-size": str(self.size_bytes),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        }
        return {
            "snapshot-id": self.id,
            "sequence-number": SEQUENCE_NUMBER,
            "timestamp-ms": self.timestamp_ms,
            "manifest-list": self.manifest_list,
            "summary": summary,
            "schema-id": 0,
        }


def document(
    uuid: str,
    location: str,
    schema: IcebergSchema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
    snapshot: TableSnapshot,
) -> dict[str, Any]:
    """Return the metadata of a table as JSON."""
    return {
        "format-version": 2,
        "table-uuid": uuid,
        "location": location,
        "last-sequence-number": SEQUENCE_NUMBER,
        "last-updated-ms": snapshot.timestamp_ms,
        "last-column-id": schema.last_id,
        "current-schema-id": 0,
        "schemas": [schema.document()],
        "default-spec-id": 0,
        "partition-specs": [spec.document()],
        "last-partition-id": spec.last_id,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": dict(properties),
        "current-snapshot-id": snapshot.id,
        "refs": {"main": {"snapshot-id": snapshot.id, "type": "branch"}},
        "snapshots": [snapshot.document()],
        "snapshot-log": [{"snapshot-id": snapshot.id, "timestamp-ms": snapshot.timestamp_ms}],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }


def name_mapping(schema: IcebergSchema, names: Mapping[str, str]) -> str:
    """Return the property that gives fields of files without ids the ids of the table.

    `names` are the names in files of columns that have another name in the table.
    """
    return json.dumps([_mapped(each, names.get(each.name)) for each in schema.fields])


def _mapped(field: IcebergField, own_name: str | None = None) -> dict[str, Any]:
    names: Sequence[str] = [own_name or field.name]
    mapped: dict[str, Any] = {"field-id": field.id, "names": names}
    inner = [_mapped(each) for each in field.inner]
    return {**mapped, "fields": inner} if inner else mapped
