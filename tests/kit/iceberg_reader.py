"""Reads a loaded table of Iceberg as its specification says, without any Iceberg library."""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq


def local(location: str) -> bytes:
    """Return a file of this machine."""
    return Path(location.removeprefix("file://")).read_bytes()


def snapshot(metadata: Mapping[str, Any], id_: int | None = None) -> dict[str, Any]:
    """Return a snapshot, or the current one."""
    wanted = metadata["current-snapshot-id"] if id_ is None else id_
    (found,) = (each for each in metadata["snapshots"] if each["snapshot-id"] == wanted)
    return dict(found)


def data_files(metadata: Mapping[str, Any], id_: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the data files of a snapshot, or of the current one."""
    at = snapshot(metadata, id_)
    earlier = {each["snapshot-id"]: each["sequence-number"] for each in metadata["snapshots"]}
    for manifest in fastavro.reader(io.BytesIO(local(at["manifest-list"]))):
        content = local(manifest["manifest_path"])
        assert len(content) == manifest["manifest_length"]
        entries = list(fastavro.reader(io.BytesIO(content)))
        added = [entry for entry in entries if entry["status"] == 1]
        assert len(added) == manifest["added_files_count"]
        assert len(entries) == len(added) + manifest["existing_files_count"]
        for entry in entries:
            if entry["status"] == 0:
                assert earlier.get(entry["snapshot_id"], 1) <= entry["sequence_number"]
                assert entry["sequence_number"] < at["sequence-number"]
            else:
                assert entry["snapshot_id"] == manifest["added_snapshot_id"]
            yield entry["data_file"]


def rows(metadata: Mapping[str, Any], id_: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a snapshot, with the columns that its schema finds in its files."""
    at = snapshot(metadata, id_)
    mapping = json.loads(metadata["properties"]["schema.name-mapping.default"])
    names = {each["field-id"]: each["names"][0] for each in mapping}
    (schema,) = (each for each in metadata["schemas"] if each["schema-id"] == at["schema-id"])
    found = []
    for file in data_files(metadata, id_):
        table = pq.read_table(pa.BufferReader(local(file["file_path"])), partitioning=None)
        assert table.num_rows == file["record_count"]
        own = {
            int(ids[b"PARQUET:field_id"]): each.name
            for each in table.schema
            if b"PARQUET:field_id" in (ids := each.metadata or {})
        }
        for row in table.to_pylist():
            found.append(
                {
                    field["name"]: row.get(
                        own.get(field["id"], names.get(field["id"])),
                        file["partition"].get(field["name"]),
                    )
                    for field in schema["fields"]
                }
            )
    return found
