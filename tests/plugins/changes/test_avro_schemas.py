"""Schemas of Avro from clients: those that let few bytes use much memory are refused."""

import json
from typing import Any

import pytest

from caraway_plugins.changes import avro_schemas
from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.target import BadChangesError


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    fields = [{"name": f"c{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def fixed(size: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


_DEEP: Any = "int"
for _ in range(5_000):
    _DEEP = array(_DEEP)


@pytest.mark.parametrize(
    "schema",
    [
        record("int"),
        record("null", "int"),
        record(*["null"] * 8, "int"),
        record(array(["null"])),
        record({"type": "map", "values": "null"}),
        record(fixed(0), "int"),
        record(fixed(16), "F"),
        record(array(record("int", name="Inner")), "Inner"),
        record(["null", record("int", name="Inner")]),
        record({"type": "enum", "name": "E", "symbols": ["a"]}),
    ],
)
def test_schemas_of_events(schema: Any) -> None:
    assert avro_schemas.of_text(json.dumps(schema)).own.fields.keys() == {
        each["name"] for each in schema["fields"]
    }


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (record(), "records that take no bytes"),
        (record("null"), "records that take no bytes"),
        ("null", "records that take no bytes"),
        (record(*["null"] * 9, "int"), "more than 8 fields that take no bytes"),
        (record(array("null")), "a list whose items take no bytes"),
        (record(array(fixed(0))), "a list whose items take no bytes"),
        (record(array(record("null", name="N"))), "a list whose items take no bytes"),
        (record(["null", "R"]), "recursive: 'R' contains itself"),
        (record(array("R")), "recursive: 'R' contains itself"),
        (record(fixed(-1), "int"), "size is no number of bytes"),
        (record(fixed("5"), "int"), "size is no number of bytes"),
        (record(fixed(2.5), "int"), "size is no number of bytes"),
        (record(fixed(True), "int"), "size is no number of bytes"),
        (record("unknown"), "it is malformed"),
        ({"type": "record"}, "cannot be used"),
        ({"type": "record", "name": "R", "fields": 5}, "it is malformed"),
        (5, "it is malformed"),
        (None, "it is malformed"),
        ({**record("int"), "__fastavro_parsed__": True}, "not part of Avro"),
    ],
)
def test_schemas_that_are_refused(schema: Any, said: str) -> None:
    with pytest.raises(BadChangesError, match=said):
        avro_schemas.of_document(schema)


def test_types_that_double_are_counted() -> None:
    types: list[Any] = [record("int", name="T0")]
    for number in range(1, 20):
        types.append(record(f"T{number - 1}", f"T{number - 1}", name=f"T{number}"))
    with pytest.raises(BadChangesError, match="more than 20000 fields"):
        avro_schemas.of_document(record(*types))


@pytest.mark.parametrize("document", [_DEEP, record(_DEEP)])
def test_nesting_is_bounded(document: Any) -> None:
    with pytest.raises(BadChangesError, match=r"nested too deeply|cannot be used"):
        avro_schemas.of_document(document)


@pytest.mark.parametrize("text", ["", "{", "\udcff", "[" * 100_000])
def test_texts_that_are_not_json(text: str) -> None:
    with pytest.raises(BadChangesError, match=r"is not JSON|cannot be used"):
        avro_schemas.of_text(text)


def test_meanings_are_those_of_rows_in_after() -> None:
    day = {"type": "int", "connect.name": "io.debezium.time.Date"}
    row = {"type": "record", "name": "V", "fields": [{"name": "day", "type": day}]}
    event = {"type": "record", "name": "E", "fields": [{"name": "after", "type": row}]}
    found = avro_schemas.of_document(event)
    assert found.meaning.meaning_of("day") == Meaning("io.debezium.time.Date")
    assert found.own.meaning_of("day") == UNKNOWN
