"""Manifests and their lists without data files that a write replaces by others."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro

_CODEC = "deflate"
_EXISTING, _DELETED = 0, 2


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """The number of files that a write takes out of a table, and of their rows and bytes."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: RemovedFiles) -> RemovedFiles:
        return RemovedFiles(
            self.files + other.files, self.rows + other.rows, self.bytes + other.bytes
        )


@dataclass(frozen=True, slots=True)
class RewrittenManifest:
    """A manifest that says which files are gone, and what a list says of it."""

    content: bytes
    listed: Mapping[str, Any]
    removed: RemovedFiles


def rewritten(
    content: bytes, listed: Mapping[str, Any], gone: Collection[str], snapshot_id: int
) -> RewrittenManifest | None:
    """Return a manifest for a snapshot without some of its files; None: it has none of them.

    `listed` is what the list before says of it.
    """
    reader: Any = fastavro.reader(io.BytesIO(content))
    there = [each for each in reader if each["status"] != _DELETED]
    removed = [each for each in there if _path(each) in gone]
    if not removed:
        return None
    entries = [_entry(each, listed, _path(each) in gone, snapshot_id) for each in there]
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, entries, _CODEC, metadata=metadata)
    counts = {
        "added_files_count": 0,
        "existing_files_count": len(there) - len(removed),
        "deleted_files_count": len(removed),
        "added_rows_count": 0,
        "existing_rows_count": _rows(there) - _rows(removed),
        "deleted_rows_count": _rows(removed),
    }
    size = sum(each["data_file"]["file_size_in_bytes"] for each in removed)
    of_list = {
        **listed,
        **counts,
        "manifest_length": out.tell(),
        "added_snapshot_id": snapshot_id,
    }
    totals = RemovedFiles(len(removed), _rows(removed), size)
    return RewrittenManifest(out.getvalue(), of_list, totals)


def _entry(
    entry: Mapping[str, Any], listed: Mapping[str, Any], is_gone: bool, snapshot_id: int
) -> dict[str, Any]:
    added_by = entry.get("snapshot_id") or listed["added_snapshot_id"]
    return {
        **entry,
        "status": _DELETED if is_gone else _EXISTING,
        "snapshot_id": snapshot_id if is_gone else added_by,
    }


def _path(entry: Mapping[str, Any]) -> str:
    return str(entry["data_file"]["file_path"])


def _rows(entries: Collection[Mapping[str, Any]]) -> int:
    return sum(each["data_file"]["record_count"] for each in entries)
