"""Histories of tables: ids stay with their fields, and snapshots are listed while they are read."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.iceberg import column_types, history
from caraway_plugins.iceberg.history import LostFile, TableHistory
from caraway_plugins.iceberg.metadata import TableSnapshot

A = pa.field("a", pa.int32())
B = pa.field("b", pa.struct([("x", pa.string()), ("y", pa.int64())]))
C = pa.field("c", pa.decimal128(9, 2))
SPEC = {"partition-specs": [{"spec-id": 0, "fields": []}]}


def with_columns(past: TableHistory, *fields: pa.Field, names: Any = None) -> TableHistory:
    columns = pa.schema(fields)
    ids = past.ids(column_types.schema(columns))
    schema = column_types.schema(columns, ids, last_id=past.last_id)
    found, _ = past.described(
        schema, names or {}, lambda own, _last: {**SPEC, "current-schema-id": own.id}
    )
    return found


def ids(past: TableHistory) -> dict[str, int]:
    current = past.table["current-schema-id"]
    (schema,) = (each for each in past.schemas if each["schema-id"] == current)
    return {each["name"]: each["id"] for each in schema["fields"]}


def followed(past: TableHistory, key: str, now_ms: int, **given: Any) -> TableHistory:
    moment = past.moment_of(now_ms, now_ms)
    number = past.last_sequence_number + 1
    made = TableSnapshot(past.next_id(key), moment, f"{key}.avro", sequence_number=number,
                         schema_id=past.table["current-schema-id"])  # fmt: skip
    return past.followed_by(made.document(), key, now_ms, **{"is_copy": True, **given})


def keys(past: TableHistory) -> list[str]:
    return [each.key for each in past.snapshots]


def test_a_column_that_is_added_or_dropped_changes_no_other_id() -> None:
    first = with_columns(TableHistory(), A, B, C)
    assert ids(first) == {"a": 1, "b": 2, "c": 5}
    second = with_columns(first, pa.field("new", pa.string()), C, A)
    assert ids(second) == {"new": 6, "c": 5, "a": 1}
    wider = pa.struct([("z", pa.bool_()), ("y", pa.int64()), ("x", pa.string())])
    third = with_columns(second, pa.field("b", wider))
    (schema,) = (each for each in third.schemas if each["schema-id"] == 2)
    (struct,) = schema["fields"]
    assert struct["id"] == 2
    inner = {each["name"]: each["id"] for each in struct["type"]["fields"]}
    assert inner == {"z": 7, "y": 4, "x": 3}


@pytest.mark.parametrize(
    ("before", "now", "is_same"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(9, 2), pa.decimal128(12, 2), True),
        (pa.decimal128(9, 2), pa.decimal128(12, 3), False),
        (pa.int64(), pa.int32(), False),
        (pa.int64(), pa.string(), False),
        (pa.struct([("x", pa.int32())]), pa.int32(), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int32()), pa.struct([("element", pa.int32())]), False),
    ],
)
def test_types_that_no_reader_widens_get_another_id(
    before: pa.DataType, now: pa.DataType, is_same: bool
) -> None:
    first = with_columns(TableHistory(), pa.field("a", before))
    second = with_columns(first, pa.field("a", now))
    assert (ids(second)["a"] == 1) == is_same
    assert is_same or ids(second)["a"] > first.last_id


def test_a_history_is_the_same_after_it_was_written() -> None:
    past = followed(with_columns(TableHistory(), A, B), "one", 5, is_copy=False)
    past = followed(past, "two", 6, is_copy=False, lost=[("p", 1, "s")])
    assert TableHistory.from_document(json.loads(json.dumps(past.document()))) == past


def test_ids_of_files_win_over_others() -> None:
    past = followed(with_columns(TableHistory(), A, C), "one", 5)
    assert past.unless_contradicted({("a",): 1, ("d",): 9}) is past
    others: list[dict[tuple[str, ...], int]] = [{("a",): 7}, {("d",): 1}]
    for own in others:
        fresh = past.unless_contradicted(own)
        assert (fresh.fields, fresh.snapshots) == ({}, ())
        assert (fresh.last_id, fresh.last_sequence_number) == (2, 1)


def test_copies_are_listed_for_a_while_after_they_were_replaced() -> None:
    past = with_columns(TableHistory(), A)
    for number in range(3):
        past = followed(past, str(number), number * 100)

    def listed(now_ms: int) -> list[str]:
        return keys(past.readable(now_ms, 150, lambda _lost: False))

    assert listed(200) == ["0", "1", "2"]
    assert listed(250) == ["1", "2"]
    assert listed(10_000) == ["2"]
    log = past.metadata("u")["snapshot-log"]
    assert [each["timestamp-ms"] for each in log] == [0, 100, 200]


def test_other_snapshots_are_listed_while_their_files_are_there() -> None:
    past = with_columns(TableHistory(), A)
    gone: list[LostFile] = [("gone", 1, "s")]
    for key, lost in (("0", []), ("1", []), ("2", gone), ("3", [])):
        past = followed(past, key, 5, is_copy=False, lost=lost)

    def listed(there: Sequence[LostFile]) -> list[str]:
        return keys(past.readable(9, 0, lambda lost: set(lost) <= set(there)))

    assert listed(gone) == ["0", "1", "2", "3"]
    # The one after which the file was lost has it, and so may those before it.
    assert listed([]) == ["2", "3"]
    many = [(str(number), 1, "s") for number in range(history.MOST_LOST + 1)]
    past = followed(past, "4", 6, is_copy=False, lost=many)
    assert listed(many) == ["4"]


def test_rows_that_come_back_are_a_new_snapshot() -> None:
    past = followed(followed(with_columns(TableHistory(), A), "one", 100), "two", 200)
    earlier = past.with_key("one")
    assert earlier is not None
    past = past.followed_by(past.restored(earlier, 300), "one", 300, is_copy=True)
    assert keys(past) == ["one", "two", "one"]
    first, second, third = (each.document for each in past.snapshots)
    assert third["manifest-list"] == first["manifest-list"]
    assert third["snapshot-id"] != first["snapshot-id"]
    assert (third["parent-snapshot-id"], third["timestamp-ms"]) == (second["snapshot-id"], 300)
    assert third["sequence-number"] == 3


def test_times_of_snapshots_only_grow() -> None:
    past = followed(with_columns(TableHistory(), A), "one", 100)
    assert past.moment_of(150, 200) == 150
    assert past.moment_of(50, 200) == 200
    assert past.moment_of(900, 200) == 200
    assert past.moment_of(50, 100) == 101


def test_snapshots_that_today_would_be_read_otherwise_are_left_out() -> None:
    past = followed(with_columns(TableHistory(), A, C), "one", 5, is_copy=False)
    assert keys(with_columns(past, A, C, B)) == ["one"]
    # Without ids, files are read by names: dropped ones would be read as NULL.
    assert keys(with_columns(past, A)) == []
    assert keys(with_columns(past, pa.field("a", pa.string()), C)) == []
    assert keys(with_columns(past, A, C, names={"a": "A"})) == []
    assert keys(followed(past, "copy", 6, is_copy=True)) == ["copy"]
    copies = followed(with_columns(TableHistory(), A, C), "one", 5)
    assert keys(with_columns(copies, pa.field("a", pa.string()))) == ["one"]


def test_what_is_kept_is_bounded() -> None:
    past = with_columns(TableHistory(), A)
    for number in range(history.MOST_SNAPSHOTS + 5):
        past = followed(past, str(number), number)
    assert keys(past)[0] == "5"
    for number in range(5):
        past = followed(with_columns(past, pa.field(f"c{number}", pa.int8())), f"s{number}", 999)
    past = past.only(lambda each: each.key == "s4")
    assert len(past.schemas) == 1
