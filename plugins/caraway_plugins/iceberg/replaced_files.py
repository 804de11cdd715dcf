"""Manifests and their lists without data files that a write replaces by others."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from caraway_plugins.iceberg import avro_schemas, read_manifests
from caraway_plugins.iceberg.added_lists import ListedSnapshot

_CODEC = "deflate"
_EXISTING, _ADDED, _DELETED = 0, 1, 2
_COUNTED = {"added": _ADDED, "existing": _EXISTING, "deleted": _DELETED}
_NUMBERS = ("sequence_number", "file_sequence_number")


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
    paths: frozenset[str]
    """The locations of the files that are gone."""


def counts(content: bytes) -> dict[str, int]:
    """Return what a list says of the files and rows of a manifest."""
    return _counts(list(_reader(content)))


def rewritten(
    content: bytes, listed: Mapping[str, Any], gone: Collection[str], snapshot: ListedSnapshot
) -> RewrittenManifest | None:
    """Return a manifest for a snapshot without some of its files; None: it has none of them.

    `listed` is what the list before says of it.
    """
    reader = _reader(content)
    there = [each for each in reader if each["status"] != _DELETED]
    removed = [each for each in there if _path(each) in gone]
    if not removed:
        return None
    if snapshot.version > 1:
        _number(there, listed)
    kept = [each for each in there if _path(each) not in gone]
    live = [_as(_EXISTING, each, _adding(each, listed)) for each in kept]
    # Those that are gone come last, where they cannot move the ids of the rows of others.
    entries = [*live, *(_as(_DELETED, each, snapshot.id) for each in removed)]
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    schema = json.loads(reader.metadata["avro.schema"])
    if snapshot.version > 1:
        metadata |= {"format-version": str(snapshot.version), "content": "data"}
        schema = avro_schemas.upgraded_schema(schema, snapshot.version)
    out = io.BytesIO()
    fastavro.writer(out, schema, entries, _CODEC, metadata=metadata)
    numbers = [each["sequence_number"] for each in live] if snapshot.version > 1 else []
    of_list = {
        **listed,
        **_counts(entries),
        "manifest_length": out.tell(),
        "added_snapshot_id": snapshot.id,
        "sequence_number": snapshot.sequence_number,
        "min_sequence_number": min(numbers, default=snapshot.sequence_number),
        "first_row_id": None,
    }
    size = sum(each["data_file"]["file_size_in_bytes"] for each in removed)
    totals = RemovedFiles(len(removed), _rows(removed), size)
    return RewrittenManifest(out.getvalue(), of_list, totals, frozenset(map(_path, removed)))


def _reader(content: bytes) -> Any:
    return fastavro.reader(io.BytesIO(content))


def _number(entries: Sequence[dict[str, Any]], listed: Mapping[str, Any]) -> None:
    """Give entries the numbers that they had from their manifest, which is a new one now."""
    files = [each["data_file"] for each in entries]
    ids = list(read_manifests.first_row_ids(files, listed.get("first_row_id")))
    for entry, file, id_ in zip(entries, files, ids, strict=True):
        for name in _NUMBERS:
            if entry.get(name) is None:
                entry[name] = listed.get("sequence_number") or 0
        file |= {"content": file.get("content") or 0, "first_row_id": id_}


def _adding(entry: Mapping[str, Any], listed: Mapping[str, Any]) -> int:
    """Return the id of the snapshot that added a file."""
    return int(entry.get("snapshot_id") or listed["added_snapshot_id"])


def _as(status: int, entry: Mapping[str, Any], snapshot_id: int) -> dict[str, Any]:
    return {**entry, "status": status, "snapshot_id": snapshot_id}


def _counts(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, status in _COUNTED.items():
        own = [each for each in entries if each["status"] == status]
        found |= {f"{name}_files_count": len(own), f"{name}_rows_count": _rows(own)}
    return found


def _path(entry: Mapping[str, Any]) -> str:
    return str(entry["data_file"]["file_path"])


def _rows(entries: Collection[Mapping[str, Any]]) -> int:
    return sum(each["data_file"]["record_count"] for each in entries)
