"""The types of functions: their casts in SQL, and their schemas for tools."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_core.manifest.texts.column_types import arrow_type
from caraway_core.sqltext.sql_functions import SqlCast

_LONGEST = 1_000
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_SHORT_UNITS = {long.lower(): short for short, long in _UNITS.items()}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_OTHER_WORDS = {
    "large_utf8": "text",
    "largeutf8": "text",
    "large_binary": "binary",
    "largebinary": "binary",
    "date64": "date",
}
_DECIMAL = re.compile(r"decimal(?:128|256)\s*(\(.*\))")
_TIMESTAMP = re.compile(
    r"timestamp\s*\(\s*(s|ms|us|ns|second|millisecond|microsecond|nanosecond)\s*(?:,\s*(.+?)\s*)?\)"
)
_LIST = re.compile(r"(?:(?:large_?)?list|array)\s*(?:<(.+)>|\((.+)\))|(.+?)\s*\[\s*\]", re.I | re.S)
_STRUCT = re.compile(r"struct\s*(?:<(.+)>|\((.+)\))", re.I | re.S)
_FIELD = re.compile(r'\s*("?)(\w+)\1\s*:\s*(.+)', re.S)
_INTEGER, _NUMBER, _STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}
_DATE = {"type": "string", "format": "date"}
_TIME = {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True)
class _Type:
    """A type: its name in Arrow, its name in SQL if there is one, and its JSON Schema."""

    arrow: str
    sql: str | None
    schema: Mapping[str, Any]


_PLAIN = {
    "bool": _Type("Boolean", "BOOLEAN", {"type": "boolean"}),
    "int8": _Type("Int8", "TINYINT", _INTEGER),
    "int16": _Type("Int16", "SMALLINT", _INTEGER),
    "int32": _Type("Int32", "INT", _INTEGER),
    "int64": _Type("Int64", "BIGINT", _INTEGER),
    "uint8": _Type("UInt8", "TINYINT UNSIGNED", _INTEGER),
    "uint16": _Type("UInt16", "SMALLINT UNSIGNED", _INTEGER),
    "uint32": _Type("UInt32", "INT UNSIGNED", _INTEGER),
    "uint64": _Type("UInt64", "BIGINT UNSIGNED", _INTEGER),
    "float": _Type("Float32", "FLOAT", _NUMBER),
    "double": _Type("Float64", "DOUBLE", _NUMBER),
    "string": _Type("Utf8", "VARCHAR", _STRING),
    "binary": _Type("Binary", "BYTEA", _STRING),
    "date32[day]": _Type("Date32", "DATE", _DATE),
}


def cast(text: str) -> SqlCast:
    """Return the cast to a type such as `int64`, `decimal(10,2)` or `struct<a: int, b: text>`.

    Raises:
        ValueError: there is no such type.
    """
    type_ = _parsed(text)
    if type_.sql is not None:
        return SqlCast(text, "CAST(", f" AS {type_.sql})")
    return SqlCast(text, "arrow_cast(", f", '{type_.arrow}')")


def schema(text: str, description: str | None, default: object) -> Mapping[str, Any]:
    """Return the JSON Schema of a parameter of a type; `default` is None if there is none."""
    made = dict(_parsed(text).schema)
    if description:
        made["description"] = description
    if default is not None:
        made["default"] = default
    return made


def _parsed(text: str) -> _Type:
    name = " ".join(text.split())
    if len(name) <= _LONGEST:
        if match := _STRUCT.fullmatch(name):
            return _struct(match[1] or match[2], text)
        if match := _LIST.fullmatch(name):
            item = _parsed(match[1] or match[2] or match[3])
            return _Type(f"List({item.arrow})", None, {"type": "array", "items": item.schema})
    return _scalar(str(arrow_type(_spoken(name.lower()))))


def _struct(inside: str, text: str) -> _Type:
    fields: dict[str, _Type] = {}
    for each in _split(inside):
        match = _FIELD.fullmatch(each)
        if match is None or match[2] in fields:
            raise ValueError(f"'{text}' is not a type; write struct<name: type, other: type>")
        fields[match[2]] = _parsed(match[3])
    arrow = ", ".join(f'"{name}": {each.arrow}' for name, each in fields.items())
    properties = {name: each.schema for name, each in fields.items()}
    return _Type(f"Struct({arrow})", None, {"type": "object", "properties": properties})


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas outside of brackets."""
    depth = start = 0
    for place, each in enumerate(text):
        depth += (each in "<([") - (each in ">)]")
        if each == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _scalar(type_: str) -> _Type:
    """Return a type from the text that pyarrow has for it."""
    if (plain := _PLAIN.get(type_)) is not None:
        return plain
    name, _, inside = type_.rstrip("])").replace("(", "[").partition("[")
    if name.startswith("decimal"):
        return _Type(f"{name.capitalize()}({inside})", f"DECIMAL({inside})", _NUMBER)
    unit, _, zone = inside.partition(", tz=")
    if name == "timestamp":
        told = f'Some("{zone}")' if zone else "None"
        return _Type(f"Timestamp({_UNITS[unit]}, {told})", None, _TIME)
    return _Type(f"{name.capitalize()}({_UNITS[unit]})", None, _STRING)


def _spoken(name: str) -> str:
    """Return a type in the words of declared columns; other manifests have those of Arrow."""
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    if match := _DECIMAL.fullmatch(name):
        return f"decimal{match[1]}"
    if match := _TIMESTAMP.fullmatch(name):
        unit, zone = _SHORT_UNITS.get(match[1], match[1]), match[2]
        if zone is None or zone == "none":
            return f"timestamp({_DIGITS[unit]})"
        if zone in ("utc", 'some("utc")', 'some("+00:00")', "+00:00"):
            return f"timestamptz({_DIGITS[unit]})"
    return name
