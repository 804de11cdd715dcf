"""Tables of each version of the format: which statements write them, and what PyIceberg reads."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata
from pyiceberg.transforms import BucketTransform, IdentityTransform

from caraway_core.errors import ExecutionError
from caraway_plugins.iceberg import added_snapshots
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.kit import iceberg_tables
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import (
    ROWS,
    SMALL,
    UPGRADE,
    Document,
    Written,
    files,
    in_order,
    manifests,
    of_version,
    refused,
    rewrite,
    small,
)


@pytest.mark.parametrize(
    "partitions", [[], [("id", BucketTransform(3)), ("v", IdentityTransform())]]
)
@pytest.mark.parametrize("version", [1, 3])
def test_values_of_all_types_are_added(
    tmp_path: Path, version: int, partitions: list[written_tables.Partition]
) -> None:
    written = of_version(tmp_path, version, ROWS.schema, partitions=partitions)
    assert written.insert(ROWS) == 4
    assert repr(written.read()) == repr(in_order(ROWS))
    assert repr(written.own_rows()) == repr(in_order(ROWS))
    assert [row["id"] for row in written.read(row_filter="i < 0 or v = 'a b'")] == [0, 1]
    ((metadata, entries),) = manifests(written)
    assert metadata["format-version"] == str(version)
    assert ("content" in metadata) == (version > 1)
    assert all(("sequence_number" in each) == (version > 1) for each in entries)
    assert all(("block_size_in_bytes" in each["data_file"]) == (version == 1) for each in entries)


def test_the_first_version_is_written_in_turn_with_others(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1))
    written.catalog.load_table("n.t").append(small(2))
    written.insert(small(3))
    written.catalog.load_table("n.t").append(small(4))
    assert written.read() == written.own_rows() == small(1, 2, 3, 4).to_pylist()
    table = written.catalog.load_table("n.t")
    assert table.metadata.format_version == 1
    table.delete("id = 1")
    written.insert(small(5))
    assert [each["id"] for each in written.read()] == [2, 3, 4, 5]


def test_a_catalog_over_rest_takes_snapshots_of_the_first_version(tmp_path: Path) -> None:
    with written_tables.over_rest(of_version(tmp_path, 1)) as written:
        for number in range(1, 4):
            assert written.insert(small(number)) == 1
        assert written.read() == small(1, 2, 3).to_pylist()


def test_a_catalog_over_rest_counts_ids_of_rows_as_they_are_counted_here(tmp_path: Path) -> None:
    written = of_version(tmp_path, 3)
    written.insert(small(1, 2))
    before = json.loads(iceberg_tables.newest(tmp_path / "n" / "t").read_text())
    written.insert(small(3))
    after = json.loads(iceberg_tables.newest(tmp_path / "n" / "t").read_text())
    body = added_snapshots.updates(before, after["snapshots"][-1])
    updates = [TypeAdapter(TableUpdate).validate_python(each) for each in body["updates"]]
    judged: Any = update_table_metadata(TableMetadataUtil.parse_obj(before), tuple(updates))
    assert judged.next_row_id == after["next-row-id"] == 3
    assert judged.last_sequence_number == after["last-sequence-number"] == 2


def test_metadata_without_lists_are_written(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1, partitions=[("id", BucketTransform(3))])
    optional = (
        "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id",
        "sort-orders", "default-sort-order-id", "refs", "snapshot-log", "metadata-log",
    )  # fmt: skip

    def change(document: Document) -> Document:
        fields = [{k: v for k, v in each.items() if k != "field-id"}
                  for each in document["partition-specs"][-1]["fields"]]  # fmt: skip
        kept = {key: value for key, value in document.items() if key not in optional}
        return {**kept, "partition-spec": fields}

    rewrite(tmp_path, change)
    assert written.insert(small(1, 2, 3, 4)) == 4
    assert written.read() == written.own_rows() == small(1, 2, 3, 4).to_pylist()
    assert written.insert(small(5)) == 1
    assert len(written.read(row_filter="id = 5")) == 1


def first_row_ids(written: Written) -> list[int]:
    """Return the first id of the rows of each manifest of the current snapshot."""
    return [each["first_row_id"] for each in written_tables.listed(written)]


def numbers(written: Written) -> tuple[int, int, int]:
    metadata: Any = written.catalog.load_table("n.t").metadata
    last = metadata.snapshots[-1]
    return last.first_row_id, last.added_rows, metadata.next_row_id


def test_rows_of_the_third_version_have_ids(tmp_path: Path) -> None:
    written = of_version(tmp_path, 3)
    written.insert(small(1, 2))
    assert (first_row_ids(written), numbers(written)) == ([0], (0, 2, 2))
    written.insert(small(3, 4, 5))
    assert (first_row_ids(written), numbers(written)) == ([2, 0], (2, 3, 5))


@pytest.mark.parametrize("before", [1, 2])
def test_rows_of_before_an_upgrade_get_ids(tmp_path: Path, before: int) -> None:
    written = of_version(tmp_path, before)
    written.catalog.load_table("n.t").append(small(1, 2))
    written.insert(small(3))
    upgrade = {**UPGRADE, "last-sequence-number": 2}
    rewrite(tmp_path, lambda document: {**document, **upgrade})
    written.insert(small(4))
    assert (first_row_ids(written), numbers(written)) == ([0, 1, 2], (0, 4, 4))
    assert written.read() == written.own_rows() == small(1, 2, 3, 4).to_pylist()


def test_changes_of_the_first_version_are_written_anew(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1, 2, 3))
    written.catalog.load_table("n.t").append(small(4, 5))
    written.catalog.load_table("n.t").append(small(6))
    placed, rows = written.placed()
    assert written.replace(placed, rows.filter(pc.is_in(rows.column("id"), pa.array([2, 4])))) == 2
    assert written.read() == written.own_rows() == small(1, 3, 5, 6).to_pylist()
    last = written.snapshots()[-1].summary
    assert last.operation.value == "overwrite"
    assert [last[f"deleted-{each}"] for each in ("data-files", "records")] == ["2", "5"]
    assert [last[f"total-{each}"] for each in ("data-files", "records", "delete-files")] == [
        "2", "4", "0",
    ]  # fmt: skip
    statuses = sorted(each["status"] for _, entries in manifests(written) for each in entries)
    assert statuses == [1, 1, 2, 2]
    # Others go on from there, and rows that are all gone leave no file.
    table = written.catalog.load_table("n.t")
    table.append(small(7))
    table.delete("id = 1")
    placed, rows = written.placed()
    assert written.replace(placed, rows) == 4
    assert written.read() == []
    assert written.snapshots()[-1].summary.operation.value == "delete"
    assert written.snapshots()[-1].summary["total-data-files"] == "0"
    written.insert(small(8))
    assert written.read() == written.own_rows() == small(8).to_pylist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encryption-keys": [{"key-id": "k"}]}, "the table is encrypted"),
        ({"properties": {"encryption.key-id": "k"}}, "the table is encrypted"),
        ({"type": "timestamp_ns"}, "it has columns of nanoseconds"),
        ({"write-default": "x"}, "column 'v' has a default value for new rows"),
    ],
)
def test_features_that_are_not_written(tmp_path: Path, change: Document, words: str) -> None:
    written = of_version(tmp_path, 3)

    def changed(document: Document) -> Document:
        if change.keys() & {"type", "write-default"}:
            document["schemas"][0]["fields"][1] |= change
            return document
        return {**document, **change}

    rewrite(tmp_path, changed)
    assert words in refused(written, small(1), tmp_path).message


def test_a_list_that_is_cut_leaves_the_table(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1))
    path = iceberg_tables.manifest_list(tmp_path / "n" / "t")
    whole = path.read_bytes()
    insert = IcebergWriter().insert(written.table, SMALL)
    path.write_bytes(whole[:100])
    there = files(tmp_path)
    with pytest.raises(
        ExecutionError, match=r"its manifest list, or .*, is damaged.*no row was inserted"
    ):
        insert.insert_rows(iter(small(2).to_batches()))
    assert files(tmp_path) == there
    path.write_bytes(whole)
    assert written.read() == small(1).to_pylist()
