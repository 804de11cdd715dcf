"""The snapshot that a write adds to a table of others, and the metadata with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_plugins.iceberg.added_manifests import AddedFile, Content
from caraway_plugins.iceberg.replaced_files import RemovedFiles

_MAIN = "main"
_VERSIONS_KEPT = "write.metadata.previous-versions-max"
_USUALLY_KEPT = 100
_TOTALS = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-delete-files", "added-delete-files", ""),
    ("total-position-deletes", "added-position-deletes", ""),
    ("total-equality-deletes", "added-equality-deletes", ""),
)
"""Each total, with the fields of what a snapshot adds to it and takes from it."""
_NONE = RemovedFiles()


@dataclass(frozen=True, slots=True)
class AddedSnapshot:
    """The snapshot of a write, with the files that it adds. No other snapshot has its `id`."""

    id: int
    files: Mapping[Content, Sequence[AddedFile]] = field(repr=False)
    notes: Mapping[str, str] = field(default_factory=dict)
    """The other fields of its summary."""

    def operation(self, removed: RemovedFiles = _NONE) -> str:
        """Return the name of the kind of write, as other programs know it."""
        data, deletes = self.files.get("data"), self.files.get("deletes")
        if not deletes and not removed.files:
            return "append"
        return "overwrite" if data else "delete"

    def document(
        self,
        metadata: Mapping[str, Any],
        timestamp_ms: int,
        manifest_list: str,
        assigned_rows: int = 0,
        removed: RemovedFiles = _NONE,
    ) -> dict[str, Any]:
        """Return the snapshot as JSON, as one that follows the current one of some metadata."""
        parent = current(metadata)
        made: dict[str, object] = {
            "snapshot-id": self.id,
            "timestamp-ms": timestamp_ms,
            "manifest-list": manifest_list,
            "summary": self._summary(parent, removed),
            "schema-id": metadata["current-schema-id"],
        }
        if metadata["format-version"] > 1:
            made["sequence-number"] = next_sequence_number(metadata)
        if metadata["format-version"] > 2:
            made |= {"first-row-id": next_row_id(metadata), "added-rows": assigned_rows}
        return made if parent is None else {**made, "parent-snapshot-id": parent["snapshot-id"]}

    def _summary(self, parent: Mapping[str, Any] | None, removed: RemovedFiles) -> dict[str, str]:
        data, deletes = self.files.get("data", ()), self.files.get("deletes", ())
        sizes = [each.size_bytes for each in (*data, *deletes)]
        added = {
            "added-data-files": len(data),
            "added-records": _rows(data),
            "added-files-size": sum(sizes),
            "added-delete-files": len(deletes),
            "added-position-deletes": _rows(deletes),
            "deleted-data-files": removed.files,
            "deleted-records": removed.rows,
            "removed-files-size": removed.bytes,
        }
        before = {} if parent is None else parent.get("summary", {})
        totals = {}
        for total, name, taken in _TOTALS:
            # Without a total of before, none is known now.
            if parent is None or str(before.get(total, "")).isdigit():
                change = added.get(name, 0) - added.get(taken, 0)
                totals[total] = int(before.get(total, 0)) + change
        counts = {**{k: v for k, v in added.items() if v}, **totals}
        said = {k: str(v) for k, v in counts.items()}
        return {"operation": self.operation(removed), **said, **self.notes}


def _rows(files: Sequence[AddedFile]) -> int:
    return sum(each.statistics.row_count for each in files)


def current(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the current snapshot of a table, if it has one."""
    id_ = metadata.get("current-snapshot-id")
    found = [each for each in metadata.get("snapshots") or () if each["snapshot-id"] == id_]
    return found[0] if found else None


def next_sequence_number(metadata: Mapping[str, Any]) -> int:
    """Return the number of the next snapshot of a table."""
    return int(metadata.get("last-sequence-number") or 0) + 1


def next_row_id(metadata: Mapping[str, Any]) -> int:
    """Return the first id that rows of the next snapshot of a table have."""
    return int(metadata.get("next-row-id") or 0)


def has_only_appends(metadata: Mapping[str, Any], since: int | None) -> bool:
    """Return whether a table's rows of a snapshot are all there, and where they were."""
    by_id = {each["snapshot-id"]: each for each in metadata.get("snapshots") or ()}
    id_ = metadata.get("current-snapshot-id")
    while id_ != since:
        snapshot = by_id.get(id_)
        if snapshot is None or snapshot.get("summary", {}).get("operation") != "append":
            return False
        id_ = snapshot.get("parent-snapshot-id")
    return True


def followed(
    metadata: Mapping[str, Any], snapshot: Mapping[str, Any], location: str
) -> dict[str, Any]:
    """Return the metadata of a table with one more snapshot; `location` is where it was before."""
    id_, at = snapshot["snapshot-id"], snapshot["timestamp-ms"]
    kept = str((metadata.get("properties") or {}).get(_VERSIONS_KEPT, _USUALLY_KEPT))
    most = int(kept) if kept.isdigit() else _USUALLY_KEPT
    log = [
        *(metadata.get("metadata-log") or ()),
        {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": location},
    ]
    numbers: dict[str, int] = {}
    if "sequence-number" in snapshot:
        numbers["last-sequence-number"] = snapshot["sequence-number"]
    if "added-rows" in snapshot:
        numbers["next-row-id"] = next_row_id(metadata) + snapshot["added-rows"]
    return {
        **metadata,
        **numbers,
        "last-updated-ms": at,
        "current-snapshot-id": id_,
        "snapshots": [*(metadata.get("snapshots") or ()), snapshot],
        "refs": {**(metadata.get("refs") or {}), _MAIN: _moved(metadata, id_)},
        "snapshot-log": [
            *(metadata.get("snapshot-log") or ()),
            {"snapshot-id": id_, "timestamp-ms": at},
        ],
        "metadata-log": log[-most:] if most else [],
    }


def updates(metadata: Mapping[str, object], snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit of the REST protocol that adds a snapshot to a table as it was."""
    parent = current(metadata)
    before = None if parent is None else parent["snapshot-id"]
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": _MAIN, "snapshot-id": before},
            {
                "type": "assert-current-schema-id",
                "current-schema-id": metadata["current-schema-id"],
            },
            {"type": "assert-default-spec-id", "default-spec-id": metadata["default-spec-id"]},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": _MAIN,
                **_moved(metadata, snapshot["snapshot-id"]),
            },
        ],
    }


def creation(
    metadata: Mapping[str, Any], snapshot: Mapping[str, object] | None
) -> dict[str, object]:
    """Return a commit of the REST protocol that creates a table as its catalog staged it."""
    (schema,), (spec,) = metadata["schemas"], metadata["partition-specs"]
    made: list[dict[str, Any]] = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": schema, "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    if properties := metadata.get("properties"):
        made.append({"action": "set-properties", "updates": properties})
    if snapshot is not None:
        made += updates(metadata, snapshot)["updates"]
    return {"requirements": [{"type": "assert-create"}], "updates": made}


def _moved(metadata: Mapping[str, Any], id_: int) -> dict[str, object]:
    """Return the main branch with another snapshot; it keeps how long snapshots are kept."""
    before = (metadata.get("refs") or {}).get(_MAIN) or {}
    return {**before, "type": "branch", "snapshot-id": id_}
