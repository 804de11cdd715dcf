"""Schemas of Avro files as those of Arrow."""

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources import avro

_POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
_ENUM = {"type": "enum", "name": "Colour", "symbols": ["red"]}
_FIXED = {"type": "fixed", "name": "Two", "size": 2}
_X = pa.struct([("x", pa.int32())])


def schema_of(schema: Any) -> pa.Schema:
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [])
    stream.seek(0)
    return avro.read_schema(stream)


def row(*types: Any, **more: str) -> dict[str, Any]:
    fields = [{"name": f"c{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": "Row", "fields": fields, **more}


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("null", pa.null()),
        ("int", pa.int32()),
        ({"type": "string"}, pa.string()),
        (["null", "long"], pa.int64()),
        (["double"], pa.float64()),
        (_ENUM, pa.string()),
        (_FIXED, pa.binary(2)),
        (_POINT, _X),
        ({"type": "array", "items": ["null", "bytes"]}, pa.list_(pa.binary())),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", "+00:00")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
         pa.decimal128(38, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, pa.decimal128(4, 0)),
    ],
)  # fmt: skip
def test_types(written: Any, type_: pa.DataType) -> None:
    assert schema_of(row(written)) == pa.schema([("c0", type_)])


@pytest.mark.parametrize(
    ("named", "name", "type_"),
    [(_POINT, "Point", _X), (_ENUM, "Colour", pa.string()), (_FIXED, "Two", pa.binary(2))],
)
@pytest.mark.parametrize("space", ["", "shop"])
def test_a_type_is_named_by_later_columns(
    named: dict[str, Any], name: str, type_: pa.DataType, space: str
) -> None:
    found = schema_of(row(named, name, ["null", name], **({"namespace": space} if space else {})))
    assert found.types == [type_] * 3


@pytest.mark.parametrize(
    "written",
    [
        ["int", "string"],
        {"type": "map", "values": "int"},
        ["null", "Row"],
        {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2},
    ],
)
def test_types_that_are_not_read(written: Any) -> None:
    with pytest.raises(DatasetError, match="has an unsupported type") as caught:
        schema_of(row(written))
    assert caught.value.type == "unsupported"


def test_files_have_records() -> None:
    with pytest.raises(DatasetError, match="must contain records"):
        schema_of("int")
