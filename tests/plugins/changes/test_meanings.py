"""Semantic types in schemas of events; parts that are malformed are left out."""

from typing import Any

import pytest

from caraway_plugins.changes import meanings
from caraway_plugins.changes.meanings import UNKNOWN, Meaning

DATE = "io.debezium.time.Date"


@pytest.mark.parametrize(
    ("schema", "meaning"),
    [
        (None, UNKNOWN),
        ([], UNKNOWN),
        ("string", UNKNOWN),
        ({}, UNKNOWN),
        ({"name": DATE}, Meaning(DATE)),
        ({"name": 5}, UNKNOWN),
        ({"name": "x" * 201}, UNKNOWN),
        ({"parameters": {"scale": "2"}}, Meaning(scale=2)),
        ({"parameters": {"scale": -3}}, Meaning(scale=-3)),
        ({"parameters": {"scale": "two"}}, UNKNOWN),
        ({"parameters": {"scale": None}}, UNKNOWN),
        ({"parameters": {"scale": []}}, UNKNOWN),
        ({"parameters": [2]}, UNKNOWN),
        ({"items": {"name": DATE}}, Meaning(items=Meaning(DATE))),
        ({"items": 5}, Meaning(items=UNKNOWN)),
        ({"fields": [{"field": "a", "name": DATE}]}, Meaning(fields={"a": Meaning(DATE)})),
        ({"fields": [5, {"field": 5}, {}, {"field": "b"}]}, Meaning(fields={"b": UNKNOWN})),
        ({"fields": {"field": "a"}}, UNKNOWN),
    ],
)
def test_schemas_of_kafka_connect(schema: Any, meaning: Meaning) -> None:
    assert meanings.of_connect(schema) == meaning


def record(*fields: tuple[str, Any], **more: str) -> dict[str, Any]:
    written = [{"name": name, "type": type_} for name, type_ in fields]
    return {"type": "record", "name": "R", "fields": written, **more}


_DATE = {"type": "int", "connect.name": DATE}


@pytest.mark.parametrize(
    ("schema", "meaning"),
    [
        ("int", UNKNOWN),
        (5, UNKNOWN),
        (["null", _DATE], Meaning(DATE)),
        (["int", _DATE], UNKNOWN),
        ([], UNKNOWN),
        ({"type": _DATE}, Meaning(DATE)),
        ({"type": ["null", _DATE]}, Meaning(DATE)),
        ({"type": "array", "items": _DATE}, Meaning(items=Meaning(DATE))),
        (record(("a", _DATE), ("b", "int")), Meaning(fields={"a": Meaning(DATE), "b": UNKNOWN})),
    ],
)
def test_schemas_of_avro(schema: Any, meaning: Meaning) -> None:
    assert meanings.of_avro(schema) == meaning


@pytest.mark.parametrize("name", ["V", "shop.V"])
def test_types_are_named_again(name: str) -> None:
    value = {**record(("day", _DATE)), "name": "V", "namespace": "shop"}
    found = meanings.of_avro(record(("before", ["null", value]), ("after", ["null", name])))
    assert found.meaning_of("after").meaning_of("day") == Meaning(DATE)
    assert found.meaning_of("after") == found.meaning_of("before")


def test_fields_that_are_unknown_have_no_meaning() -> None:
    assert UNKNOWN.meaning_of("a") is UNKNOWN
