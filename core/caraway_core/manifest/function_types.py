"""The types of functions: their casts in SQL, and their schemas for tools."""

import re
from collections.abc import Mapping
from typing import Any

from caraway_core.manifest.column_types import arrow_type
from caraway_core.sql_functions import SqlCast

_SQL = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "TINYINT UNSIGNED",
    "uint16": "SMALLINT UNSIGNED",
    "uint32": "INT UNSIGNED",
    "uint64": "BIGINT UNSIGNED",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BYTEA",
    "date32[day]": "DATE",
}
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
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
_LIST = re.compile(r"(?:large_?)?list\s*[<(](.+)[>)]")
_SHORT_UNITS = {long.lower(): short for short, long in _UNITS.items()}
_JSON: Mapping[str, Mapping[str, Any]] = {
    "bool": {"type": "boolean"},
    "date32[day]": {"type": "string", "format": "date"},
}


def cast(text: str) -> SqlCast:
    """Return the cast to a type such as `int64`, `decimal(10,2)` or `timestamp(us, utc)`.

    Raises:
        ValueError: there is no such type.
    """
    type_ = str(arrow_type(_spoken(text)))
    if (name := _SQL.get(type_)) is not None:
        return SqlCast(text, "CAST(", f" AS {name})")
    if type_.startswith("decimal"):
        return SqlCast(text, "CAST(", f" AS DECIMAL{type_[type_.index('(') :]})")
    return SqlCast(text, "arrow_cast(", f", '{_arrow(type_)}')")


def schema(text: str, description: str | None, default: object) -> Mapping[str, Any]:
    """Return the JSON Schema of a parameter of a type; `default` is None if there is none."""
    made = dict(_schema(str(arrow_type(_spoken(text)))))
    if description:
        made["description"] = description
    if default is not None:
        made["default"] = default
    return made


def _schema(type_: str) -> Mapping[str, Any]:
    if type_.startswith("list<"):
        return {"type": "array", "items": _schema(_item(type_))}
    if type_.startswith(("int", "uint")):
        return {"type": "integer"}
    if type_.startswith(("float", "double", "decimal")):
        return {"type": "number"}
    if type_.startswith("timestamp"):
        return {"type": "string", "format": "date-time"}
    return _JSON.get(type_, {"type": "string"})


def _arrow(type_: str) -> str:
    """Return a type as the engine writes it, from the text of pyarrow."""
    if type_.startswith("list<"):
        return f"List({_arrow(_item(type_))})"
    if type_.startswith("timestamp["):
        unit, _, zone = type_[len("timestamp[") : -1].partition(", tz=")
        told = f'Some("{zone}")' if zone else "None"
        return f"Timestamp({_UNITS[unit]}, {told})"
    if type_.startswith("time"):
        name, _, unit = type_.partition("[")
        return f"{name.capitalize()}({_UNITS[unit[:-1]]})"
    if type_.startswith("decimal"):
        return type_.capitalize()
    return _PLAIN[type_]


_PLAIN = {
    "bool": "Boolean",
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
    "float": "Float32",
    "double": "Float64",
    "string": "Utf8",
    "binary": "Binary",
    "date32[day]": "Date32",
}


def _item(type_: str) -> str:
    return type_.removeprefix("list<item: ").removesuffix(">")


def _spoken(text: str) -> str:
    """Return a type in the words of declared columns; other manifests have those of Arrow."""
    name = " ".join(text.lower().split())
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    if match := _DECIMAL.fullmatch(name):
        return f"decimal{match[1]}"
    if match := _LIST.fullmatch(name):
        return f"list<{_spoken(match[1])}>"
    if match := _TIMESTAMP.fullmatch(name):
        unit, zone = _SHORT_UNITS.get(match[1], match[1]), match[2]
        if zone is None or zone == "none":
            return f"timestamp({_DIGITS[unit]})"
        if zone in ("utc", 'some("utc")', 'some("+00:00")', "+00:00"):
            return f"timestamptz({_DIGITS[unit]})"
    return text
