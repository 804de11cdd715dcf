"""Manifests say which files are gone, and keep what they say of others."""

import io
from typing import Any

import fastavro
import pytest

from caraway_plugins.iceberg import added_manifests, replaced_files
from caraway_plugins.iceberg.added_lists import ListedSnapshot
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.iceberg.file_statistics import FileStatistics
from caraway_plugins.iceberg.replaced_files import RemovedFiles, RewrittenManifest

SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
SPEC = WrittenSpec(0, (), ())
FILES = [AddedFile(name, 10, FileStatistics(rows)) for name, rows in (("a", 3), ("b", 4))]


def rewritten(
    content: bytes, listed: Any, *gone: str, by: int = 2, version: int = 1
) -> RewrittenManifest | None:
    snapshot = ListedSnapshot(version, by, 1, 10 + by)
    return replaced_files.rewritten(content, listed, frozenset(gone), snapshot)


def manifest(version: int) -> tuple[bytes, dict[str, Any]]:
    content = added_manifests.manifest("data", SCHEMA, SPEC, 1, FILES, version)
    return content, added_manifests.listed("data", SPEC, 1, FILES, ("m", len(content)))


def entries(content: bytes) -> list[tuple[int, int, str]]:
    found: Any = fastavro.reader(io.BytesIO(content))
    return [(each["status"], each["snapshot_id"], each["data_file"]["file_path"]) for each in found]


def test_a_manifest_keeps_what_stays() -> None:
    content, listed = manifest(1)
    assert rewritten(content, listed, "c") is None
    made = rewritten(content, listed, "a", "c")
    assert made is not None
    assert entries(made.content) == [(0, 1, "b"), (2, 2, "a")]
    assert made.paths == {"a"}
    assert made.removed == RemovedFiles(1, 3, 10)
    counts = [made.listed[f"{each}_rows_count"] for each in ("added", "existing", "deleted")]
    assert (counts, made.listed["added_snapshot_id"]) == ([0, 4, 3], 2)
    assert made.listed["manifest_length"] == len(made.content)
    # Files that are gone already are no part of the next one.
    again = rewritten(made.content, made.listed, "b", by=3)
    assert again is not None
    assert entries(again.content) == [(2, 3, "b")]
    assert rewritten(again.content, again.listed, "a", "b") is None


@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_manifest_of_the_third_version_says_what_files_had_from_it(before: int) -> None:
    content, listed = manifest(before)
    listed |= {"sequence_number": 4, "first_row_id": 100}
    made = rewritten(content, listed, "a", version=3)
    assert made is not None
    reader: Any = fastavro.reader(io.BytesIO(made.content))
    numbers = [
        (
            each["data_file"]["file_path"],
            each["sequence_number"],
            each["file_sequence_number"],
            each["data_file"]["first_row_id"],
        )
        for each in reader
    ]
    assert numbers == [("b", 4, 4, 103), ("a", 4, 4, 100)]
    assert reader.metadata["format-version"] == "3"
    assert "block_size_in_bytes" not in reader.metadata["avro.schema"]
    named = ("sequence_number", "min_sequence_number", "first_row_id")
    assert [made.listed[each] for each in named] == [12, 4, None]
    again = rewritten(made.content, {**made.listed, "first_row_id": 900}, "b", by=3, version=3)
    assert again is not None
    assert again.listed["min_sequence_number"] == 13
    assert '"first_row_id"' in str(fastavro.reader(io.BytesIO(again.content)).metadata)


def test_files_of_before_an_upgrade_have_no_ids_to_keep() -> None:
    content, listed = manifest(2)
    made = rewritten(content, {**listed, "sequence_number": 4}, "a", version=3)
    assert made is not None
    found: Any = fastavro.reader(io.BytesIO(made.content))
    assert [each["data_file"]["first_row_id"] for each in found] == [None, None]


def test_files_and_rows_of_a_manifest_are_counted() -> None:
    content, listed = manifest(1)
    made = rewritten(content, listed, "a")
    assert made is not None
    names = [f"{each}_rows_count" for each in ("added", "existing", "deleted")]
    assert [replaced_files.counts(content)[each] for each in names] == [7, 0, 0]
    assert [replaced_files.counts(made.content)[each] for each in names] == [0, 4, 3]
