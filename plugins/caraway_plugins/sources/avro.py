"""Converts Avro schemas to Arrow schemas."""

from typing import IO, Any

import fastavro
import pyarrow as pa

from caraway_core.errors import DatasetError

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_DIGITS = 38
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "+00:00"),
    "timestamp-micros": pa.timestamp("us", "+00:00"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def read_schema(stream: IO[bytes]) -> pa.Schema:
    """Read the writer's schema.

    Raises:
        DatasetError: the schema has an unsupported type.
    """
    schema: Any = fastavro.reader(stream).writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DatasetError("unsupported", "an Avro file must contain records")
    named: dict[str, pa.DataType | None] = {}
    return pa.schema([_field(each, named) for each in schema["fields"]])


def _field(field: dict[str, Any], named: dict[str, pa.DataType | None]) -> pa.Field:
    return pa.field(field["name"], _type(field["type"], field["name"], named))


def _type(schema: Any, column: str, named: dict[str, pa.DataType | None]) -> pa.DataType:
    """Return a type. `named` are those before it in the file; None: it contains this one."""
    if not isinstance(schema, dict) or not isinstance(schema.get("name"), str):
        return _unnamed(schema, column, named)
    named[schema["name"]] = None
    found = named[schema["name"]] = _unnamed(schema, column, named)
    return found


def _unnamed(schema: Any, column: str, named: dict[str, pa.DataType | None]) -> pa.DataType:
    match schema:
        case str() if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        case str() if (found := named.get(schema)) is not None:
            return found
        case list():
            kinds = [each for each in schema if each != "null"]
            if len(kinds) == 1:
                return _type(kinds[0], column, named)
        case {"logicalType": "decimal", "precision": int(precision)} if 0 < precision <= _DIGITS:
            return pa.decimal128(precision, schema.get("scale", 0))
        case {"logicalType": logical} if logical in _LOGICAL:
            return _LOGICAL[logical]
        case {"type": "record", "fields": fields}:
            return pa.struct([_field(each, named) for each in fields])
        case {"type": "array", "items": items}:
            return pa.list_(_type(items, column, named))
        case {"type": "fixed", "size": size} if schema.get("logicalType") != "decimal":
            return pa.binary(size)
        case {"type": inner} if inner in _PRIMITIVES and schema.get("logicalType") != "decimal":
            return _PRIMITIVES[inner]
    raise DatasetError("unsupported", f"Avro column '{column}' has an unsupported type")
