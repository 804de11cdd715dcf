"""Fields that take no NULL are checked wherever they are."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.iceberg import read_schemas
from caraway_plugins.sources.iceberg.writing import required, written

LONG = {"type": "long"}
INNER = {"id": 4, "name": "x", "required": True, **LONG}
DOCUMENT: dict[str, Any] = {
    "schema-id": 0,
    "type": "struct",
    "fields": [
        {"id": 1, "name": "a", "required": True, **LONG},
        {"id": 2, "name": "b", "required": False, **LONG},
        {
            "id": 3, "name": "s", "required": False,
            "type": {"type": "struct", "fields": [INNER]},
        },
        {
            "id": 5, "name": "l", "required": False,
            "type": {"type": "list", "element-id": 6, "element": "long", "element-required": True},
        },
        {
            "id": 7, "name": "m", "required": False,
            "type": {
                "type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "long",
                "value-required": True,
            },
        },
    ],
}  # fmt: skip
FULL = {"a": 1, "b": None, "s": {"x": 1}, "l": [1], "m": [("k", 1)]}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({}, None),
        ({"s": None, "l": None, "m": None}, None),
        ({"l": [], "m": []}, None),
        ({"a": None}, "a"),
        ({"s": {"x": None}}, "s.x"),
        ({"l": [1, None]}, "l.element"),
        ({"m": [("k", None)]}, "m.value"),
    ],
)
def test_the_path_of_a_field_without_a_value(change: dict[str, Any], path: str | None) -> None:
    schema = read_schemas.schema(DOCUMENT)
    needed = required.required_fields(DOCUMENT)
    assert needed == {1, 4, 6, 9}
    rows = pa.Table.from_pylist([FULL, {**FULL, **change}], written.columns(schema))
    (batch,) = rows.combine_chunks().to_batches()
    assert required.missing(batch, schema, needed) == path


def test_nothing_is_required_of_other_tables() -> None:
    optional = {**DOCUMENT, "fields": [DOCUMENT["fields"][1]]}
    assert required.required_fields(optional) == frozenset()
