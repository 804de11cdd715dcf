"""Writes deletion vectors of Iceberg for tests, as other programs do. PyIceberg reads them."""

import io
import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
from pyroaring import BitMap64

from tests.kit import iceberg_tables
from tests.kit.iceberg_tables import local

_MAGIC = bytes.fromhex("d1d33964")
_FIELDS = (("referenced_data_file", "string", 143), ("content_offset", "long", 144),
           ("content_size_in_bytes", "long", 145))  # fmt: skip


def blob(positions: Sequence[int], *, with_runs: bool = False) -> bytes:
    """Return the deletion vector of some positions."""
    bitmap = BitMap64(positions)
    if with_runs:
        bitmap.run_optimize()
    vector = _MAGIC + bitmap.serialize()
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def upgrade(folder: Path) -> None:
    """Have a table be one of the third version, in which there are vectors."""
    document = json.loads(iceberg_tables.newest(folder).read_text())
    iceberg_tables.write_metadata(folder, {**document, "format-version": 3, "next-row-id": 0})


def delete(folder: Path, positions: Mapping[str, Sequence[int]], **other: Any) -> Path:
    """Add a snapshot with the vectors of data files, all in one file, in place of those before.

    `other` is what manifests say in place of the truth. Returns the file.
    """
    file = folder / "data" / f"{uuid.uuid4()}-deletes.puffin"
    blobs = {path: blob(found) for path, found in positions.items()}
    places = _write_puffin(file, blobs)
    found = iceberg_tables.data_files(folder)
    partitions = {each["data_file"]["file_path"]: each["data_file"]["partition"] for each in found}
    data_files = [
        dict.fromkeys(found[0]["data_file"]) | {
            "content": 1,
            "file_path": file.as_uri(),
            "file_format": "PUFFIN",
            "partition": partitions[path],
            "record_count": len(positions[path]),
            "file_size_in_bytes": file.stat().st_size,
            "referenced_data_file": path,
            "content_offset": places[path],
            "content_size_in_bytes": len(content),
            **other,
        }
        for path, content in blobs.items()
    ]  # fmt: skip
    iceberg_tables.commit_delete_files(folder, data_files, _with_fields, _has_vectors)
    return file


def _write_puffin(file: Path, blobs: Mapping[str, bytes]) -> dict[str, int]:
    """Write a file of vectors; return where they are in it."""
    content, places, listed = b"PFA1", {}, []
    for path, each in blobs.items():
        places[path] = len(content)
        listed.append({
            "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1,
            "offset": len(content), "length": len(each),
            "properties": {"referenced-data-file": path},
        })  # fmt: skip
        content += each
    footer = json.dumps({"blobs": listed}).encode()
    size = len(footer).to_bytes(4, "little")
    file.write_bytes(content + b"PFA1" + footer + size + b"\0" * 4 + b"PFA1")
    return places


def _with_fields(schema: Any) -> Any:
    """Return the schema of entries with what the third version has for vectors."""
    fields = {each["name"]: each for each in schema["fields"]}
    data_file = fields["data_file"]["type"]
    known = {each["name"] for each in data_file["fields"]}
    more = [
        {"name": name, "type": ["null", type_], "default": None, "field-id": id_}
        for name, type_, id_ in _FIELDS
        if name not in known
    ]
    whole = {**data_file, "fields": [*data_file["fields"], *more]}
    fields["data_file"] = {**fields["data_file"], "type": whole}
    return {**schema, "fields": list(fields.values())}


def _has_vectors(listed: Mapping[str, Any]) -> bool:
    if listed["content"] == 0:
        return False
    entries = fastavro.reader(io.BytesIO(local(listed["manifest_path"]).read_bytes()))
    return any(each["data_file"]["file_format"] == "PUFFIN" for each in map(dict, entries))
