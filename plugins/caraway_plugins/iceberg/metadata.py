"""Table metadata: what a client reads first of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.iceberg.manifests import FileTotals
from caraway_plugins.iceberg.partitioning import PartitionSpec

NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The rows of a table at one moment. `manifest_list` is the location of their list."""

    id: int
    timestamp_ms: int
    manifest_list: str
    added: FileTotals = field(default_factory=FileTotals)
    total: FileTotals = field(default_factory=FileTotals)
    removed_files: int = 0
    sequence_number: int = 1
    parent_id: int | None = None
    schema_id: int = 0

    def document(self) -> dict[str, Any]:
        """Return the snapshot as JSON."""
        # Readers of what was added since a snapshot go by "append".
        summary = {
            "operation": "append" if not self.removed_files else "overwrite",
            "added-data-files": str(self.added.files),
            "added-records": str(self.added.rows),
            "added-files-size": str(self.added.bytes),
            "deleted-data-files": str(self.removed_files),
            "total-data-files": str(self.total.files),
            "total-records": str(self.total.rows),
            "total-files-size": str(self.total.bytes),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        }
        parent = {} if self.parent_id is None else {"parent-snapshot-id": self.parent_id}
        return {
            "snapshot-id": self.id,
            **parent,
            "sequence-number": self.sequence_number,
            "timestamp-ms": self.timestamp_ms,
            "manifest-list": self.manifest_list,
            "summary": summary,
            "schema-id": self.schema_id,
        }


def document(
    uuid: str,
    table: Mapping[str, object],
    snapshots: Sequence[Mapping[str, object]],
    schemas: Sequence[Mapping[str, object]],
) -> dict[str, Any]:
    """Return the metadata of a table as JSON.

    `table` has the parts of `described`. The last one of the snapshots is the current one.
    """
    current = snapshots[-1]
    return {
        "format-version": 2,
        "table-uuid": uuid,
        "last-sequence-number": current["sequence-number"],
        "last-updated-ms": current["timestamp-ms"],
        "schemas": list(schemas),
        **table,
        "current-snapshot-id": current["snapshot-id"],
        "refs": {"main": {"snapshot-id": current["snapshot-id"], "type": "branch"}},
        "snapshots": list(snapshots),
        "snapshot-log": [
            {"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]}
            for each in snapshots
        ],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }


def described(
    location: str,
    schema: IcebergSchema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
    last_column_id: int,
) -> dict[str, Any]:
    """Return the parts of metadata that have nothing to do with snapshots."""
    return {
        "location": location,
        "last-column-id": last_column_id,
        "current-schema-id": schema.id,
        "default-spec-id": 0,
        "partition-specs": [spec.document()],
        "last-partition-id": spec.last_id,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": dict(properties),
    }


def name_mapping(schema: IcebergSchema, names: Mapping[str, str]) -> str:
    """Return the property that gives fields of files without ids the ids of the table.

    `names` are the names in files of columns that have another name in the table.
    """
    return json.dumps([_mapped(each, names.get(each.name)) for each in schema.fields])


def _mapped(field: IcebergField, own_name: str | None = None) -> dict[str, object]:
    names: Sequence[str] = [own_name or field.name]
    mapped: dict[str, object] = {"field-id": field.id, "names": names}
    inner = [_mapped(each) for each in field.inner]
    return {**mapped, "fields": inner} if inner else mapped
