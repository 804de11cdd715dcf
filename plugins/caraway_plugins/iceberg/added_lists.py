"""The list of all manifests of a snapshot: those of the one before, and those that are added."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from caraway_plugins.iceberg import avro_schemas

_CODEC = "deflate"
_DATA = 0
_COUNTS = (
    ("added_files_count", "added_data_files_count"),
    ("existing_files_count", "existing_data_files_count"),
    ("deleted_files_count", "deleted_data_files_count"),
)
"""Fields of manifest lists, each with the name that older writers gave it."""
_NUMBERS = ("content", "sequence_number", "min_sequence_number")
_NEEDED = tuple(
    f"{name}_{what}_count"
    for name in ("added", "existing", "deleted")
    for what in ("files", "rows")
)


@dataclass(frozen=True, slots=True)
class ListedSnapshot:
    """A snapshot for its manifest list. `version` is that of the format."""

    version: int
    id: int
    parent_id: int | None
    sequence_number: int
    next_row_id: int = 0
    """The first id of rows that the snapshot may give out, from version 3 on."""


@dataclass(frozen=True, slots=True)
class AddedList:
    """A manifest list, and how many ids of rows it gives out."""

    content: bytes
    assigned_rows: int


def records(content: bytes) -> list[dict[str, Any]]:
    """Return what a list says of its manifests, with the names of the format."""
    return [_named(dict(each)) for each in fastavro.reader(io.BytesIO(content))]


def lacks_counts(record: Mapping[str, Any]) -> bool:
    """Return whether a list does not count the files or rows of a manifest, as old ones do."""
    return any(record.get(name) is None for name in _NEEDED)


def manifest_list(
    snapshot: ListedSnapshot,
    before: Sequence[Mapping[str, object]],
    added: Sequence[Mapping[str, object]],
) -> AddedList:
    """Return the list of a snapshot: the manifests of the list before it, and those added.

    Raises:
        ValueError: the list before lacks a count.
    """
    version, number = snapshot.version, snapshot.sequence_number
    numbered = {"sequence_number": number, "min_sequence_number": number}
    listed = [{**each, **numbered} for each in added]
    listed += [_kept(each, version) for each in before]
    assigned = _assign_row_ids(listed, snapshot.next_row_id) if version > 2 else 0
    parent = "null" if snapshot.parent_id is None else str(snapshot.parent_id)
    metadata = {
        "snapshot-id": str(snapshot.id),
        "parent-snapshot-id": parent,
        **({"sequence-number": str(number)} if version > 1 else {}),
        "format-version": str(version),
    }
    out = io.BytesIO()
    schema = avro_schemas.LIST_SCHEMAS[version]
    fastavro.writer(out, schema, listed, _CODEC, metadata=metadata)
    return AddedList(out.getvalue(), assigned)


def _assign_row_ids(listed: Sequence[dict[str, Any]], first: int) -> int:
    """Give the rows of data manifests that have no ids those from `first` on; return how many.

    Manifests have none that are added, or are of snapshots before the table had version 3.
    """
    next_id = first
    for each in listed:
        if each["content"] == _DATA and each.get("first_row_id") is None:
            each["first_row_id"] = next_id
            next_id += each["added_rows_count"] + each["existing_rows_count"]
    return next_id - first


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, **{name: record.get(name, record.get(older)) for name, older in _COUNTS}}


def _kept(record: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return what another writer's list says of a manifest, with all numbers of the format."""
    if version > 1 and lacks_counts(record):
        raise ValueError("the manifest list lacks counts")
    return {**dict.fromkeys(_NUMBERS, 0), **record}
