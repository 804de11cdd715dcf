"""Manifests and their lists have what Iceberg readers look for."""

import io
import json
from dataclasses import replace
from datetime import date
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_plugins.iceberg import column_types, manifests, metadata, partitioning
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.file_statistics import FileStatistics
from caraway_plugins.iceberg.manifests import AddedBy, DataFile, FileTotals

COLUMNS = pa.schema([("a", pa.int64()), ("day", pa.date32()), ("city", pa.string())])
SCHEMA = column_types.schema(COLUMNS)
SPEC = partitioning.spec(SCHEMA, [COLUMNS.field("day"), COLUMNS.field("city")])


def file(name: str, *values: str | None) -> DataFile:
    known = FileStatistics(10, [4], {1: 99}, {1: 10}, {1: 0}, {1: b"\x01"}, {1: b"\x02"})
    return DataFile(f"file:///d/{name}", 500, known, SPEC.values(values))


def records(content: bytes) -> tuple[list[Any], dict[str, str]]:
    reader = fastavro.reader(io.BytesIO(content))
    return list(reader), reader.metadata


def test_a_manifest_has_files_with_statistics_and_partitions() -> None:
    files = [file("a", "2024-03-01", "Bern"), file("b", "2023-01-01", None)]
    written = manifests.manifest(SCHEMA, SPEC, 77, files)
    found, head = records(written.content)
    first = found[0]["data_file"]
    assert (found[0]["status"], found[0]["snapshot_id"]) == (1, 77)
    assert first["file_path"] == "file:///d/a" and first["file_format"] == "PARQUET"
    assert first["partition"] == {"day": date(2024, 3, 1), "city": "Bern"}
    assert first["lower_bounds"] == [{"key": 1, "value": b"\x01"}]
    assert (first["record_count"], first["file_size_in_bytes"]) == (10, 500)
    assert json.loads(head["partition-spec"])[0]["transform"] == "identity"
    assert json.loads(head["schema"]) == SCHEMA.document()
    assert head["format-version"] == "2"
    day, city = written.partitions
    assert day["lower_bound"] == (19358).to_bytes(4, "little")
    assert day["contains_null"] is False
    assert city == {
        "contains_null": True,
        "contains_nan": None,
        "lower_bound": b"Bern",
        "upper_bound": b"Bern",
    }


def test_a_list_has_the_manifests_with_their_counts() -> None:
    files = [file("a", "2024-03-01", "Bern"), file("b", "2023-01-01", "Rome")]
    written = manifests.manifest(SCHEMA, SPEC, 77, files)
    (found,), head = records(manifests.manifest_list(77, 1, [("file:///d/m0.avro", written)]))
    assert found["manifest_path"] == "file:///d/m0.avro"
    assert found["manifest_length"] == len(written.content)
    assert (found["added_files_count"], found["added_rows_count"]) == (2, 20)
    assert found["partitions"][1]["upper_bound"] == b"Rome"
    assert head["snapshot-id"] == "77"


def test_values_of_folders_that_do_not_fit_are_refused() -> None:
    with pytest.raises(NoIcebergTypeError, match="'soon' is no date for column 'day'"):
        SPEC.values(["soon", "Bern"])
    columns = pa.schema([("p", pa.decimal128(5, 2))])
    with pytest.raises(NoIcebergTypeError, match=r"partition column 'p' is decimal128\(5, 2\)"):
        partitioning.spec(column_types.schema(columns), list(columns))


def test_metadata_names_its_snapshots_and_maps_names() -> None:
    total = FileTotals(2, 20, 1000)
    first = metadata.TableSnapshot(77, 1_700_000_000_000, "file:///d/list.avro", total, total)
    second = metadata.TableSnapshot(
        78, 1_700_000_000_001, "file:///d/other.avro", total, total, 1, 2, parent_id=77
    )
    mapping = metadata.name_mapping(SCHEMA, {"city": "City Name"})
    properties = {metadata.NAME_MAPPING: mapping}
    table = metadata.described("file:///d", SCHEMA, SPEC, properties, 9)
    snapshots = [first.document(), second.document()]
    document = metadata.document("u-u", table, snapshots, [SCHEMA.document()])
    assert document["format-version"] == 2
    assert document["current-snapshot-id"] == 78
    assert document["refs"]["main"] == {"snapshot-id": 78, "type": "branch"}
    assert document["snapshots"][0]["manifest-list"] == "file:///d/list.avro"
    assert document["snapshots"][0]["summary"]["total-records"] == "20"
    assert [each["summary"]["operation"] for each in snapshots] == ["append", "overwrite"]
    assert (document["last-sequence-number"], snapshots[1]["parent-snapshot-id"]) == (2, 77)
    assert [each["snapshot-id"] for each in document["snapshot-log"]] == [77, 78]
    assert (document["last-column-id"], document["last-partition-id"]) == (9, 1001)
    names = {each["field-id"]: each["names"] for each in json.loads(mapping)}
    assert names == {1: ["a"], 2: ["day"], 3: ["City Name"]}


def test_files_of_earlier_snapshots_are_not_added_again() -> None:
    old = replace(file("a", "2024-03-01", "Bern"), added_by=AddedBy(76, 3))
    written = manifests.manifest(SCHEMA, SPEC, 77, [old, file("b", "2024-03-01", "Rome")])
    (kept, added), _ = records(written.content)
    assert (kept["status"], kept["snapshot_id"]) == (0, 76)
    assert (kept["sequence_number"], kept["file_sequence_number"]) == (3, 3)
    assert (added["status"], added["snapshot_id"], added["sequence_number"]) == (1, 77, None)
    (listed,), head = records(manifests.manifest_list(77, 4, [("m", written)], 76))
    assert (listed["added_files_count"], listed["existing_files_count"]) == (1, 1)
    assert (listed["sequence_number"], listed["min_sequence_number"]) == (4, 3)
    assert head["parent-snapshot-id"] == "76"
