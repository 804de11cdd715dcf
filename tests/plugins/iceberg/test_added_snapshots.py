"""The snapshot of a write, and the metadata of a table with it."""

from typing import Any

import pytest

from caraway_plugins.iceberg import added_snapshots
from caraway_plugins.iceberg.added_manifests import AddedFile
from caraway_plugins.iceberg.added_snapshots import AddedSnapshot
from caraway_plugins.iceberg.file_statistics import FileStatistics

FILE = AddedFile("file:///a", 10, FileStatistics(3))
DELETES = AddedFile("file:///d", 5, FileStatistics(2))


def snapshot(id_: int, parent: int | None, operation: str = "append", **summary: str) -> Any:
    made: dict[str, Any] = {"snapshot-id": id_, "summary": {"operation": operation, **summary}}
    return made if parent is None else {**made, "parent-snapshot-id": parent}


def metadata(*snapshots: Any, **others: Any) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": "u",
        "current-schema-id": 3,
        "default-spec-id": 0,
        "last-updated-ms": 5,
        "current-snapshot-id": snapshots[-1]["snapshot-id"] if snapshots else -1,
        "snapshots": list(snapshots),
        **others,
    }


@pytest.mark.parametrize(
    ("files", "operation"),
    [
        ({"data": [FILE]}, "append"),
        ({"data": [FILE], "deletes": []}, "append"),
        ({"data": [FILE], "deletes": [DELETES]}, "overwrite"),
        ({"data": [], "deletes": [DELETES]}, "delete"),
    ],
)
def test_operations(files: Any, operation: str) -> None:
    assert AddedSnapshot(1, files).operation() == operation


def test_totals_count_on_where_they_are_known() -> None:
    before = {"total-records": "7", "total-data-files": "x"}
    made = AddedSnapshot(9, {"data": [FILE], "deletes": [DELETES]})
    document = made.document(metadata(snapshot(1, None, **before)), 6, "file:///list")
    assert (document["parent-snapshot-id"], document["schema-id"]) == (1, 3)
    summary = document["summary"]
    assert (summary["total-records"], summary["added-records"]) == ("10", "3")
    assert (summary["added-position-deletes"], summary["added-files-size"]) == ("2", "15")
    assert "total-data-files" not in summary and "total-delete-files" not in summary
    first = made.document(metadata(), 6, "file:///list")
    assert first["summary"]["total-delete-files"] == "1"
    assert "parent-snapshot-id" not in first


@pytest.mark.parametrize(
    ("snapshots", "since", "expected"),
    [
        ([snapshot(1, None)], 1, True),
        ([snapshot(1, None), snapshot(2, 1), snapshot(3, 2)], 1, True),
        ([snapshot(1, None), snapshot(2, 1, "replace"), snapshot(3, 2)], 1, False),
        ([snapshot(1, None), snapshot(2, 1, "overwrite")], 2, True),
        ([snapshot(1, None), snapshot(3, 2)], 1, False),  # A snapshot between has expired.
        ([snapshot(2, None)], 1, False),  # The table was rolled back, or made anew.
        ([snapshot(1, None), snapshot(2, 1)], None, True),
    ],
)
def test_rows_are_where_they_were_after_appends_alone(
    snapshots: list[Any], since: int | None, expected: bool
) -> None:
    assert added_snapshots.has_only_appends(metadata(*snapshots), since) == expected


def test_a_table_without_snapshots_has_none_of_before() -> None:
    document = {**metadata(), "current-snapshot-id": None}
    assert added_snapshots.has_only_appends(document, None)


def test_metadata_keep_what_is_not_of_the_snapshot() -> None:
    before = metadata(
        snapshot(1, None),
        refs={
            "main": {"type": "branch", "snapshot-id": 1, "max-ref-age-ms": 7},
            "t": {"type": "tag", "snapshot-id": 1},
        },
        properties={"write.metadata.previous-versions-max": "2"},
    )
    before["metadata-log"] = [{"timestamp-ms": n, "metadata-file": f"f{n}"} for n in (1, 2)]
    added = {**snapshot(2, 1), "sequence-number": 8, "timestamp-ms": 9}
    after = added_snapshots.followed(before, added, "file:///m")
    assert after["refs"]["main"] == {"type": "branch", "snapshot-id": 2, "max-ref-age-ms": 7}
    assert after["refs"]["t"] == before["refs"]["t"]
    assert [each["metadata-file"] for each in after["metadata-log"]] == ["f2", "file:///m"]
    assert (after["last-sequence-number"], after["last-updated-ms"]) == (8, 9)
    assert after["snapshots"] == [*before["snapshots"], added]
    assert before["current-snapshot-id"] == 1


def test_a_commit_over_rest_keeps_the_branch() -> None:
    before = metadata(
        snapshot(1, None), refs={"main": {"snapshot-id": 1, "min-snapshots-to-keep": 4}}
    )
    commit = added_snapshots.updates(before, snapshot(2, 1))
    assert commit["updates"][1] == {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "type": "branch",
        "snapshot-id": 2,
        "min-snapshots-to-keep": 4,
    }
    kinds = {each["type"]: each for each in commit["requirements"]}
    assert kinds["assert-ref-snapshot-id"]["snapshot-id"] == 1
    assert kinds["assert-current-schema-id"]["current-schema-id"] == 3


@pytest.mark.parametrize(
    ("version", "numbers", "after"),
    [
        (1, {}, {}),
        (2, {"sequence-number": 5}, {"last-sequence-number": 5}),
        (
            3,
            {"sequence-number": 5, "first-row-id": 7, "added-rows": 3},
            {"last-sequence-number": 5, "next-row-id": 10},
        ),
    ],
)
def test_numbers_of_each_version(
    version: int, numbers: dict[str, int], after: dict[str, int]
) -> None:
    before = metadata(**{"format-version": version})
    if version > 1:
        before["last-sequence-number"] = 4
    if version > 2:
        before["next-row-id"] = 7
    made = AddedSnapshot(9, {"data": [FILE]}).document(before, 6, "file:///list", 3)
    names = ("sequence-number", "first-row-id", "added-rows")
    assert {name: made[name] for name in names if name in made} == numbers
    document = added_snapshots.followed(before, made, "file:///m")
    lasts = ("last-sequence-number", "next-row-id")
    assert {name: document[name] for name in lasts if name in document} == after
