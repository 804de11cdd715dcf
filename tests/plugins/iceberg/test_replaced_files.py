"""Manifests say which files are gone, and keep what they say of others."""

import io
from typing import Any

import fastavro
import pytest

from caraway_plugins.iceberg import added_manifests, replaced_files
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.iceberg.file_statistics import FileStatistics
from caraway_plugins.iceberg.replaced_files import RemovedFiles, RewrittenManifest

SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
SPEC = WrittenSpec(0, (), ())
FILES = [AddedFile(name, 10, FileStatistics(rows)) for name, rows in (("a", 3), ("b", 4))]


def rewritten(content: bytes, listed: Any, *gone: str, by: int = 2) -> RewrittenManifest | None:
    return replaced_files.rewritten(content, listed, frozenset(gone), by)


def entries(content: bytes) -> list[tuple[int, int, str]]:
    found: Any = fastavro.reader(io.BytesIO(content))
    return [(each["status"], each["snapshot_id"], each["data_file"]["file_path"]) for each in found]


@pytest.mark.parametrize("version", [1, 2])
def test_a_manifest_keeps_what_stays(version: int) -> None:
    content = added_manifests.manifest("data", SCHEMA, SPEC, 1, FILES, version)
    listed = added_manifests.listed("data", SPEC, 1, FILES, ("m", len(content)))
    assert rewritten(content, listed, "c") is None
    made = rewritten(content, listed, "a", "c")
    assert made is not None
    assert entries(made.content) == [(2, 2, "a"), (0, 1, "b")]
    assert made.removed == RemovedFiles(1, 3, 10)
    counts = [made.listed[f"{each}_rows_count"] for each in ("added", "existing", "deleted")]
    assert (counts, made.listed["added_snapshot_id"]) == ([0, 4, 3], 2)
    assert made.listed["manifest_length"] == len(made.content)
    # Files that are gone already are no part of the next one.
    again = rewritten(made.content, made.listed, "b", by=3)
    assert again is not None
    assert entries(again.content) == [(2, 3, "b")]
    assert rewritten(again.content, again.listed, "a", "b") is None
