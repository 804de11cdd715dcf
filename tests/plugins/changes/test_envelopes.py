from dataclasses import replace
from typing import Any

import pytest

from caraway_core.changes import OFFSET, joined, log_schema
from caraway_plugins.changes.target import BadChangesError
from tests.plugins.changes.events import ORDERS, Row, decode, event, postgres, told

ROW: Row = {"id": 1, "name": "a", "price": "2.50"}
KEYLESS = replace(ORDERS, primary_key=())
CONNECT: Row = {
    "type": "struct",
    "fields": [{"type": "struct", "field": "after", "fields": [
        {"type": "bytes", "field": "price", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "2"}}]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "does"),
    [
        ([event("c", ROW)], ["UPSERT"]),
        ([event("r", ROW)], ["UPSERT"]),
        ([event("u", ROW)], ["UPSERT"]),
        ([event("u", ROW, ROW)], ["UPSERT"]),
        ([event("u", ROW, {"name": "old"})], ["UPSERT"]),
        ([event("u", ROW, {"id": 9})], ["DELETE", "UPSERT"]),
        ([event("d", None, {"id": 1})], ["DELETE"]),
        ([event("d", None, {"id": 1}), None], ["DELETE"]),
        ([event("t")], ["TRUNCATE"]),
        ([{"schema": None, "payload": event("c", ROW)}], ["UPSERT"]),
        ([{"schema": None, "payload": None}], []),
        ([], []),
    ],
)
def test_each_event_asks_for_its_changes(events: list[Any], does: list[str]) -> None:
    changes = decode(events)

    assert [name for name, _ in told(changes)] == does
    assert changes.rows.schema == log_schema(ORDERS.schema)


def test_events_with_an_effect_are_counted_once_and_tombstones_are_not() -> None:
    moved = event("u", ROW, {"id": 9})

    assert decode([moved, event("d", None, ROW), None]).received == 2


def test_key_that_changes_takes_the_old_row_away_before_the_new_one_comes() -> None:
    changes = decode(event("u", {"id": 2, "name": "b"}, {"id": 1, "name": "a"}))

    assert told(changes) == [("DELETE", {"id": 1}), ("UPSERT", {"id": 2, "name": "b"})]


def test_delete_looks_at_the_key_only() -> None:
    assert told(decode(event("d", None, {"id": 1, "price": "unreadable"}))) == [
        ("DELETE", {"id": 1})
    ]


def test_created_rows_leave_what_is_there_where_the_dataset_says_so() -> None:
    first = replace(ORDERS, twice="first")

    done = told(decode([event("c", ROW), event("r", ROW), event("u", ROW)], first))

    assert [name for name, _ in done] == ["KEEP", "KEEP", "UPSERT"]


def test_dataset_without_a_key_takes_rows_and_truncation_only() -> None:
    done = told(decode([event("c", ROW), event("t"), event("c", ROW)], KEYLESS))

    assert [name for name, _ in done] == ["INSERT", "TRUNCATE", "INSERT"]
    for refused in (event("u", ROW), event("d", None, ROW)):
        with pytest.raises(BadChangesError, match="primary_key"):
            decode(refused, KEYLESS)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"id": 1}, "no 'op'"),
        (event("x", ROW), "'x'; known: c"),
        ({"op": 5, "after": ROW}, "not a string"),
        (event("c"), "'after'"),
        (event("c", {"id": 1, "nmae": "x"}), "column 'nmae' is not in the dataset"),
        (event("c", {"name": "x"}), "primary key column 'id' is missing"),
        (event("u", {"id": None}), "primary key column 'id' is NULL"),
        (event("d", None, {"name": "x"}), "primary key column 'id' is missing in 'before'"),
        (event("d"), "without 'before'.*'id'"),
        (event("c", {"id": "x"}), "column 'id': an integer is expected.*not a string"),
        (event("c", {"id": 1, "name": 5}), "column 'name': a string is expected.*not an integer"),
        (event("c", "no row"), "'after'"),  # type: ignore[arg-type]
        ({"schema": {}, "payload": 5}, "'payload' is not an object"),
        ("text", "not an object"),
        (event("c", ROW, source=postgres(-1)), "'source'.*postgresql"),
    ],
)
def test_errors_name_the_position_of_the_event(wrong: Any, says: str) -> None:
    with pytest.raises(BadChangesError, match=f"(?s)event 3: .*{says}"):
        decode([event("c", ROW), None, wrong])


def test_column_that_is_never_null_must_be_there() -> None:
    strict = replace(
        ORDERS, schema=ORDERS.schema.set(1, ORDERS.schema.field(1).with_nullable(False))
    )

    assert told(decode(event("d", None, {"id": 1}), strict)) == [("DELETE", {"id": 1})]
    with pytest.raises(BadChangesError, match="event 2: column 'name' is missing or NULL"):
        decode([event("t"), event("c", {"id": 1})], strict)


def test_document_that_is_text_is_read_as_mongodb_writes_it() -> None:
    assert told(decode(event("c", '{"id": 1, "name": "a"}'))) == [  # type: ignore[arg-type]
        ("UPSERT", {"id": 1, "name": "a"})
    ]


def test_schema_of_an_event_tells_what_its_values_mean_and_may_change() -> None:
    base64 = {"schema": CONNECT, "payload": event("c", {"id": 1, "price": "AQA="})}
    plain = {"schema": {}, "payload": event("c", {"id": 2, "price": "7"})}

    prices = decode([base64, plain, base64]).rows["price"].to_pylist()

    assert list(map(str, prices)) == ["2.56", "7.00", "2.56"]


def test_offsets_stand_beside_the_changes() -> None:
    sent = [event("c", ROW, source=postgres(5)), event("u", ROW, {"id": 9}, source=postgres(6))]

    offsets = decode([*sent, event("t")]).rows[OFFSET].to_pylist()

    assert offsets[0] < offsets[1] == offsets[2]
    assert offsets[3] is None


def test_changes_of_several_requests_fit_together() -> None:
    both = joined([decode(event("c", ROW)), decode([])])

    assert (both.rows.num_rows, both.received) == (1, 1)
