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


def data_files(metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the data files of the current snapshot."""
    (snapshot,) = metadata["snapshots"]
    assert snapshot["snapshot-id"] == metadata["current-snapshot-id"]
    for manifest in fastavro.reader(io.BytesIO(local(snapshot["manifest-list"]))):
        content = local(manifest["manifest_path"])
        assert len(content) == manifest["manifest_length"]
        entries = list(fastavro.reader(io.BytesIO(content)))
        assert len(entries) == manifest["added_files_count"]
        for entry in entries:
            assert (entry["status"], entry["snapshot_id"]) == (1, snapshot["snapshot-id"])
            yield entry["data_file"]


def rows(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table, with the columns that the name mapping finds in its files."""
    names = {
        each["field-id"]: each["names"][0]
        for each in json.loads(metadata["properties"]["schema.name-mapping.default"])
    }
    fields = metadata["schemas"][0]["fields"]
    found = []
    for file in data_files(metadata):
        table = pq.read_table(pa.BufferReader(local(file["file_path"])), partitioning=None)
        assert table.num_rows == file["record_count"]
        for row in table.to_pylist():
            found.append(
                {
                    field["name"]: row.get(names[field["id"]], file["partition"].get(field["name"]))
                    for field in fields
                }
            )
    return found
