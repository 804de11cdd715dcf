"""Schemas of Iceberg, read from table metadata, and the Arrow types of their columns."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway_plugins.iceberg.column_types import (
    IcebergField,
    IcebergSchema,
    IcebergType,
    ListType,
    MapType,
    NoIcebergTypeError,
    StructType,
)

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]")
_UUID_BYTES = 16
_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.binary(_UUID_BYTES),
}


def schema(document: Mapping[str, Any]) -> IcebergSchema:
    """Return the schema that a document describes.

    Raises:
        NoIcebergTypeError: a column has a type or a default value that is not known here.
        LookupError, TypeError, ValueError: the document is damaged.
    """
    fields = tuple(map(_field, document["fields"]))
    return IcebergSchema(fields, int(document.get("schema-id", 0)))


def arrow_type(type_: IcebergType) -> pa.DataType:
    """Return the Arrow type of values of a type."""
    match type_:
        case StructType(fields):
            return pa.struct([pa.field(each.name, arrow_type(each.type)) for each in fields])
        case ListType(element):
            return pa.list_(arrow_type(element.type))
        case MapType(key, value):
            return pa.map_(arrow_type(key.type), arrow_type(value.type))
        case _:
            return _primitive(type_)


def _field(document: Mapping[str, Any]) -> IcebergField:
    name = str(document["name"])
    if document.get("initial-default") is not None:
        raise NoIcebergTypeError(f"column '{name}' has a default value for the rows before it")
    try:
        type_ = _type(document["type"])
    except NoIcebergTypeError as exc:
        raise NoIcebergTypeError(f"column '{name}' {exc}") from None
    return IcebergField(int(document["id"]), name, type_, str(document.get("doc") or ""))


def _type(document: Any) -> IcebergType:
    if isinstance(document, str):
        _primitive(document)
        return document
    match document["type"]:
        case "struct":
            return StructType(tuple(map(_field, document["fields"])))
        case "list":
            return ListType(_inner(document, "element"))
        case "map":
            return MapType(_inner(document, "key"), _inner(document, "value"))
        case other:
            raise NoIcebergTypeError(f"is of type {other}")


def _inner(document: Mapping[str, Any], name: str) -> IcebergField:
    return IcebergField(int(document[f"{name}-id"]), name, _type(document[name]))


def _primitive(name: str) -> pa.DataType:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    if digits := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(digits[1]), int(digits[2]))
    if length := _FIXED.fullmatch(name):
        return pa.binary(int(length[1]))
    raise NoIcebergTypeError(f"is of type {name}")
