"""Lists of manifests keep those of other writers, and give out ids of rows."""

import io
from typing import Any

import fastavro
import pytest

from caraway_plugins.iceberg import added_lists, added_manifests, avro_schemas, read_manifests
from caraway_plugins.iceberg.added_lists import AddedList, ListedSnapshot
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.iceberg.file_statistics import FileStatistics


def manifest_list(
    version: int, before: bytes | None, *added: dict[str, Any], next_row_id: int = 0
) -> bytes:
    return made_list(version, before, *added, next_row_id=next_row_id).content


def made_list(
    version: int, before: bytes | None, *added: dict[str, Any], next_row_id: int = 0
) -> AddedList:
    snapshot = ListedSnapshot(version, 2, 1, 6, next_row_id)
    records = [] if before is None else added_lists.records(before)
    return added_lists.manifest_list(snapshot, records, added)


def records_of(content: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(content)))


def listed(content: Any, name: str, snapshot_id: int = 1) -> dict[str, Any]:
    file = AddedFile(f"file:///{name}", 10, FileStatistics(3))
    place = (f"file:///{name}-m", 8)
    return added_manifests.listed(content, WrittenSpec(0, (), ()), snapshot_id, [file], place)


def older(record: dict[str, Any], names: dict[str, str]) -> bytes:
    """Return a list whose writer names fields otherwise."""
    schema: Any = {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {**each, "name": names.get(each["name"], each["name"])}
            for each in avro_schemas.LIST_SCHEMAS[2]["fields"]
        ],
    }
    renamed = {names.get(key, key): value for key, value in record.items()}
    out = io.BytesIO()
    fastavro.writer(out, schema, [renamed])
    return out.getvalue()


def test_manifests_of_other_writers_are_kept() -> None:
    record = listed("data", "a")
    record |= {"sequence_number": 1, "min_sequence_number": 1}
    names = {
        f"{each}_files_count": f"{each}_data_files_count"
        for each in ("added", "existing", "deleted")
    }
    before = older(record, names)
    content = manifest_list(2, before, listed("deletes", "d", 2))
    found = read_manifests.manifest_list(content)
    assert [(each.location, each.sequence_number) for each in found] == [
        ("file:///d-m", 6),
        ("file:///a-m", 1),
    ]
    records: list[Any] = list(fastavro.reader(io.BytesIO(content)))
    assert [each["added_files_count"] for each in records] == [1, 1]


def test_a_list_without_counts_is_refused() -> None:
    record = listed("data", "a")
    record |= {"sequence_number": 1, "min_sequence_number": 1}
    before = older(record, {"added_files_count": "other"})
    with pytest.raises(ValueError, match="lacks counts"):
        manifest_list(2, before)


def test_the_first_version_keeps_manifests_without_counts() -> None:
    record = listed("data", "a") | {"sequence_number": 0, "min_sequence_number": 0}
    without = {f"{each}_rows_count": f"{each}_other" for each in ("added", "existing", "deleted")}
    content = manifest_list(1, older(record, without), listed("data", "b"))
    new, old = records_of(content)
    assert (new["added_rows_count"], old["added_rows_count"]) == (3, None)
    assert "sequence_number" not in new and "content" not in old
    reader: Any = fastavro.reader(io.BytesIO(content))
    assert reader.metadata["format-version"] == "1" and "sequence-number" not in reader.metadata


def test_rows_get_ids_from_the_third_version_on() -> None:
    first = made_list(3, None, listed("data", "a"), next_row_id=10)
    assert first.assigned_rows == 3
    assert [each["first_row_id"] for each in records_of(first.content)] == [10]
    second = made_list(
        3, first.content, listed("data", "b"), listed("deletes", "d"), next_row_id=13
    )
    assert second.assigned_rows == 3
    assert [each["first_row_id"] for each in records_of(second.content)] == [13, None, 10]


def test_rows_of_before_the_third_version_get_ids_too() -> None:
    before = manifest_list(2, None, listed("data", "a"), listed("deletes", "d"))
    after = made_list(3, before, listed("data", "b"))
    assert after.assigned_rows == 6
    assert [each["first_row_id"] for each in records_of(after.content)] == [0, 3, None]
