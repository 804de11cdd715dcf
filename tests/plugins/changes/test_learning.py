"""Columns of a dataset that declares none."""

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_core.changes import log_schema, without_log
from caraway_plugins.changes import decoding
from caraway_plugins.changes.target import BadChangesError, ChangeTarget
from tests.plugins.changes.events import JSON

NONE = ChangeTarget(pa.schema([]), ("id",), is_learned=True)


def decoded(*events: Any, target: ChangeTarget = NONE) -> pa.Table:
    return decoding.decode(json.dumps(events).encode(), JSON, {}, target).rows


def learned(*events: Any) -> dict[str, str]:
    schema = without_log(decoded(*events).schema)
    return {field.name: str(field.type) for field in schema}


def created(**row: Any) -> dict[str, Any]:
    return {"op": "c", "before": None, "after": row}


def connect(*fields: dict[str, Any]) -> dict[str, Any]:
    inner = [
        {"field": name, "type": "struct", "fields": list(fields)} for name in ("before", "after")
    ]
    return {"type": "struct", "fields": inner}


def test_types_come_from_the_values_of_all_rows() -> None:
    first = created(id=1, i=1, f=1, b=True, s="x", n=None, late=None, big=2**70, o={"a": [1]})
    second = created(id=2, i=2, f=2.5, b=False, s=None, n=None, late=3, big=1, o=None, more="y")
    assert learned(first, None, second) == {
        "id": "int64", "i": "int64", "f": "double", "b": "bool", "s": "string", "n": "string",
        "late": "int64", "big": "decimal128(38, 0)", "o": "string", "more": "string",
    }  # fmt: skip
    rows = decoded(first, second).to_pylist()
    assert (rows[0]["o"], rows[0]["big"], rows[1]["more"]) == ('{"a":[1]}', 2**70, "y")


def test_mixed_values_are_text_or_refused_and_nothing_is_lost() -> None:
    with pytest.raises(BadChangesError, match="column 'x': a string is expected, not an integer"):
        decoded(created(id=1, x=1), created(id=2, x="a"))


def test_the_schema_next_to_an_event_gives_the_types() -> None:
    decimal = {"name": "org.apache.kafka.connect.data.Decimal",
               "parameters": {"scale": "2", "connect.decimal.precision": "10"}}  # fmt: skip
    schema = connect(
        {"field": "id", "type": "int32"},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "price", "type": "bytes", **decimal},
        {"field": "ratio", "type": "double"},
        {"field": "never", "type": "boolean"},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
    )
    row = {"id": 1, "day": 19782, "at": 1_709_164_800_000_000, "zoned": "2024-02-29T00:00:00Z",
           "price": "AJY=", "ratio": 1, "never": None, "tags": ["a"]}  # fmt: skip
    event = {"schema": schema, "payload": created(**row)}
    assert learned(event) == {
        "id": "int32", "day": "date32[day]", "at": "timestamp[us]",
        "zoned": "timestamp[us, tz=UTC]", "price": "decimal128(10, 2)", "ratio": "double",
        "never": "bool", "tags": "string",
    }  # fmt: skip
    (found,) = decoded(event).to_pylist()
    assert (str(found["day"]), found["price"], found["tags"]) == (
        "2024-02-29",
        Decimal("1.50"),
        '["a"]',
    )
    delete = {"schema": schema, "payload": {"op": "d", "before": {"id": 1}, "after": None}}
    assert list(learned(delete)) == list(row)


def test_avro_keeps_the_digits_of_decimals() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}
    row = {"type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "long"}, {"name": "price", "type": price}]}  # fmt: skip
    schema = {"type": "record", "name": "E", "fields": [
        {"name": "op", "type": "string"}, {"name": "after", "type": ["null", row]}]}  # fmt: skip
    body = io.BytesIO()
    fastavro.writer(body, schema, [{"op": "c", "after": {"id": 1, "price": Decimal("1.125")}}])
    found = decoding.decode(body.getvalue(), "application/avro", {}, NONE).rows
    assert found.schema.field("price").type == pa.decimal128(38, 3)
    assert found["price"].to_pylist() == [Decimal("1.125")]


def test_deletes_before_the_first_row_change_nothing() -> None:
    delete = {"op": "d", "before": {"id": 1, "v": "x"}, "after": None}
    body = json.dumps([delete, None, {"op": "t"}]).encode()
    found = decoding.decode(body, JSON, {}, NONE)
    assert (found.rows.num_rows, found.received) == (0, 2)
    assert found.rows.schema == log_schema(pa.schema([]))
    with pytest.raises(BadChangesError, match="event 1: the primary key column 'id' is missing"):
        decoded({"op": "d", "before": {"v": 1}, "after": None})


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (created(v=1), "event 1: the primary key column 'id' is missing in 'after'"),
        ({"op": "c", "after": None}, "op 'c' needs the row as an object in 'after'"),
        ({"after": {"id": 1}}, "it has no 'op'"),
        (created(id=1, caraway_op=1), "cannot have the name 'caraway_op'"),
        ([1], "it is not an object"),
    ],
)
def test_malformed_first_events_are_refused(event: Any, said: str) -> None:
    with pytest.raises(BadChangesError, match=said):
        decoded(event)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": 1, "new": 1}, "column 'new' is not in the dataset"),
        ({"id": "x"}, "column 'id': an integer is expected"),
    ],
)
def test_other_columns_and_types_are_refused_later(row: dict[str, Any], said: str) -> None:
    target = ChangeTarget(pa.schema([("id", pa.int64())]), ("id",), is_learned=True)
    with pytest.raises(BadChangesError, match=said) as raised:
        decoded(created(**row), target=target)
    assert "come from its first events; leave the column as it was" in raised.value.message
    assert "declare 'columns' and give the dataset another name" in raised.value.message
