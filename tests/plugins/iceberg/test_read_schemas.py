"""Schemas of Iceberg, read from metadata: the types of Arrow, and those that are not known."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.iceberg import read_schemas
from caraway_plugins.iceberg.column_types import NoIcebergTypeError


def field(type_: Any, **more: Any) -> dict[str, Any]:
    return {"id": 1, "name": "a", "type": type_, "required": False, **more}


def arrow(type_: Any) -> pa.DataType:
    (found,) = read_schemas.schema({"fields": [field(type_)]}).fields
    return read_schemas.arrow_type(found.type)


_STRUCT = {"type": "struct", "fields": [{"id": 2, "name": "x", "type": "int", "required": True}]}


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("long", pa.int64()),
        ("timestamptz_ns", pa.timestamp("ns", "UTC")),
        ("uuid", pa.binary(16)),
        ("decimal(9,2)", pa.decimal128(9, 2)),
        ("decimal( 38 , 0 )", pa.decimal128(38, 0)),
        ("fixed[16]", pa.binary(16)),
        (_STRUCT, pa.struct([("x", pa.int32())])),
        ({"type": "list", "element-id": 2, "element": _STRUCT, "element-required": False},
         pa.list_(pa.struct([("x", pa.int32())]))),
        ({"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "date",
          "value-required": False}, pa.map_(pa.string(), pa.date32())),
    ],
)  # fmt: skip
def test_types(type_: Any, found: pa.DataType) -> None:
    assert arrow(type_) == found


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("geometry", "column 'a' is of type geometry"),
        ("", "column 'a' is of type "),
        ("INT", "column 'a' is of type INT"),
        ("decimal(9)", r"is of type decimal\(9\)"),
        ("decimal(9,2) x", "is of type decimal"),
        ({"type": "variant"}, "column 'a' is of type variant"),
        ({"type": "struct", "fields": [field("geometry")]}, "column 'a' column 'a' is of type"),
    ],
)
def test_types_that_are_not_known(type_: Any, said: str) -> None:
    with pytest.raises(NoIcebergTypeError, match=said):
        arrow(type_)


@pytest.mark.parametrize("default", [0, "", False, []])
def test_defaults_of_earlier_rows_are_not_read(default: Any) -> None:
    document = {"fields": [field("int", **{"initial-default": default})]}
    with pytest.raises(NoIcebergTypeError, match="has a default value"):
        read_schemas.schema(document)


@pytest.mark.parametrize(
    "document",
    [{}, {"fields": None}, {"fields": [{}]}, {"fields": [field(None)]}, {"fields": [field({})]},
     {"fields": [field("decimal(99,2)")]}, {"fields": [{**field("int"), "id": "one"}]},
     {"fields": [field({"type": "list"})]}, {"fields": [field("int")], "schema-id": "x"}],
)  # fmt: skip
def test_damaged_schemas(document: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        read_schemas.schema(document)


def test_ids_and_docs() -> None:
    found = read_schemas.schema({"schema-id": 7, "fields": [field("int", doc="the a")]})
    assert found.id == 7
    assert (found.fields[0].id, found.fields[0].doc) == (1, "the a")
    assert read_schemas.schema({"fields": []}).id == 0
