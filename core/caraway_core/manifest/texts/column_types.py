"""The column types that a manifest may declare, and their Arrow types."""

import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_ALIASES = {
    "bool": "boolean",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "integer": "int32",
    "int4": "int32",
    "bigint": "int64",
    "long": "int64",
    "tinyint unsigned": "uint8",
    "smallint unsigned": "uint16",
    "int unsigned": "uint32",
    "integer unsigned": "uint32",
    "bigint unsigned": "uint64",
    "float": "float32",
    "real": "float32",
    "float4": "float32",
    "double": "float64",
    "double precision": "float64",
    "float8": "float64",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "utf8": "string",
    "uuid": "string",
    "bytea": "binary",
    "blob": "binary",
    "varbinary": "binary",
    "date": "date32",
}
_PLAIN = {
    "boolean": "bool_",
    **{name: name for name in ("int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float32", "float64", "string", "binary", "date32")},
}
_SIZED_TEXT = re.compile(r"(varchar|char|character varying|varbinary)\s*\(\s*\d{1,9}\s*\)")
_DECIMAL = re.compile(r"(?:decimal|numeric)(?:\s*\(\s*([0-9]{1,3})\s*(?:,\s*([0-9]{1,3})\s*)?\))?")
_TIMESTAMP = re.compile(
    r"(timestamptz|timestamp)(?:\s*\(\s*([0-9])\s*\))?(\s+with time zone|\s+without time zone)?"
)
_TIME = re.compile(r"time(?:\s*\(\s*([0-9])\s*\))?(?:\s+without time zone)?")
_LIST = re.compile(r"(?:list|array)\s*<(.+)>|(.+?)\s*\[\s*\]")
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_MAX_TEXT = 200


def arrow_type(text: str) -> "pa.DataType":
    """Return the Arrow type for a column type such as `bigint`, `decimal(10,2)` or `text[]`.

    Raises:
        ValueError: there is no such type.
    """
    name = " ".join(text.lower().split())
    found = _parse(name) if len(name) <= _MAX_TEXT else None
    if found is None:
        raise ValueError(
            f"'{text[:_MAX_TEXT]}' is not a column type; known: boolean, tinyint, smallint, int, "
            "bigint (each also unsigned), real, double, decimal(p,s), text, binary, uuid, date, "
            "time, timestamp(p), timestamptz, and T[] or list<T> of them"
        )
    return found


def _parse(name: str) -> "pa.DataType | None":
    if _SIZED_TEXT.fullmatch(name):
        name = "binary" if name.startswith("varbinary") else "text"
    if (plain := _ALIASES.get(name, name)) in _PLAIN:
        return getattr(_arrow(), _PLAIN[plain])()
    if match := _DECIMAL.fullmatch(name):
        return _decimal(int(match[1] or 38), int(match[2] or (0 if match[1] else 10)))
    if match := _TIMESTAMP.fullmatch(name):
        return _timestamp(match)
    if match := _TIME.fullmatch(name):
        unit = _UNITS.get(int(match[1] or 6))
        width = "time32" if unit in ("s", "ms") else "time64"
        return getattr(_arrow(), width)(unit) if unit else None
    if match := _LIST.fullmatch(name):
        item = _parse((match[1] or match[2]).strip())
        return None if item is None else _arrow().list_(item)
    return None


def _decimal(precision: int, scale: int) -> "pa.DataType | None":
    if not (1 <= precision <= 76 and scale <= precision):
        return None
    width = "decimal128" if precision <= 38 else "decimal256"
    return getattr(_arrow(), width)(precision, scale)


def _timestamp(match: "re.Match[str]") -> "pa.DataType | None":
    zone = match[3] or ""
    if match[1] == "timestamptz" and zone:
        return None
    is_zoned = match[1] == "timestamptz" or zone.strip() == "with time zone"
    unit = _UNITS.get(int(match[2] or 6))
    return _arrow().timestamp(unit, "UTC" if is_zoned else None) if unit else None


@functools.cache
def _arrow() -> Any:  # pyarrow publishes no types
    # Arrow takes longer to import than everything else here, and most manifests declare no types.
    import pyarrow

    return pyarrow
