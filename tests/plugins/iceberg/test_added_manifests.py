"""Manifests of added files."""

from decimal import Decimal
from typing import Any

import pytest

from caraway_plugins.iceberg import added_manifests, read_manifests
from caraway_plugins.iceberg.added_manifests import AddedFile
from caraway_plugins.iceberg.column_types import IcebergField, NoIcebergTypeError, StructType
from caraway_plugins.iceberg.file_statistics import FileStatistics
from caraway_plugins.iceberg.read_manifests import ListedManifest

COLUMNS = {
    1: IcebergField(1, "id", "long"),
    2: IcebergField(2, "m", "decimal(9, 2)"),
    3: IcebergField(3, "s", StructType(())),
    4: IcebergField(4, "u", "uuid"),
}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}


def spec(*fields: tuple[int, str], **others: Any) -> Any:
    listed = [
        {"source-id": source, "field-id": 1000 + n, "name": f"p{n}", "transform": transform}
        for n, (source, transform) in enumerate(fields)
    ]
    return added_manifests.spec({"spec-id": 5, "fields": listed, **others}, COLUMNS)


def file(name: str, *partition: Any) -> AddedFile:
    statistics = FileStatistics(3, [4], {1: 9}, {1: 3}, {1: 0}, {1: b"a"}, {1: b"b"})
    return AddedFile(name, 10, statistics, partition)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([(9, "identity")], "several columns, or by a dropped one"),
        ([(1, "zorder")], "by 'zorder'"),
        ([(4, "identity")], "column 'u' of type uuid"),
        ([(3, "identity")], "column 's'"),
    ],
)
def test_partitions_that_are_not_written(fields: Any, words: str) -> None:
    with pytest.raises(NoIcebergTypeError, match=words):
        spec(*fields)


@pytest.mark.parametrize(("content", "number"), [("data", 0), ("deletes", 1)])
def test_files_are_read_as_they_were_written(content: Any, number: int) -> None:
    written = spec((1, "bucket[4]"), (2, "identity"))
    added = [file("file:///a", 1, Decimal("1.50")), file("file:///b", None, Decimal("-9.25"))]
    content_bytes = added_manifests.manifest(content, SCHEMA, written, 7, added, 2)
    listed = ListedManifest("file:///m", len(content_bytes), 3, 5)
    found = read_manifests.manifest(content_bytes, listed)
    assert [each.partition for each in found] == [each.partition for each in added]
    assert {(each.content, each.spec_id, each.sequence_number) for each in found} == {
        (number, 5, 3)
    }
    assert [(each.location, each.row_count, each.size_bytes) for each in found] == [
        ("file:///a", 3, 10),
        ("file:///b", 3, 10),
    ]
    place = ("file:///m", len(content_bytes))
    record = added_manifests.listed(content, written, 7, added, place)
    assert (record["content"], record["added_rows_count"]) == (number, 6)
    first, second = record["partitions"]
    assert (first["contains_null"], first["lower_bound"]) == (True, (1).to_bytes(4, "little"))
    assert second["upper_bound"] == (150).to_bytes(2, "big") and not second["contains_null"]


def test_partitions_of_nan_say_so() -> None:
    columns = {1: IcebergField(1, "f", "double")}
    field = {"source-id": 1, "field-id": 1000, "name": "f", "transform": "identity"}
    written = added_manifests.spec({"spec-id": 0, "fields": [field]}, columns)
    (summary,) = added_manifests.listed(
        "data", written, 1, [file("a", 0.5), file("b", float("nan"))], ("m", 1)
    )["partitions"]
    assert summary["contains_nan"] and summary["lower_bound"] == summary["upper_bound"]
