"""Translates the names of engine types to SQL types."""

import re
from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "Boolean": "BOOLEAN", "Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT",
    "Int64": "BIGINT", "UInt8": "TINYINT UNSIGNED", "UInt16": "SMALLINT UNSIGNED",
    "UInt32": "INT UNSIGNED", "UInt64": "BIGINT UNSIGNED", "Float16": "REAL", "Float32": "REAL",
    "Float64": "DOUBLE", "Utf8": "TEXT", "Utf8View": "TEXT", "LargeUtf8": "TEXT",
    "Binary": "BYTEA", "BinaryView": "BYTEA", "LargeBinary": "BYTEA", "Date32": "DATE",
    "Date64": "DATE", "Null": "NULL",
}  # fmt: skip
_NAMED = re.compile(
    r"(?P<quoted>'[^']*'|\"[^\"]*\")"
    r"|\b(?P<decimal>Decimal(?:32|64|128|256))\b"
    r"|\b(?P<time>Timestamp|Time32|Time64|Interval|Duration)\((?:[^()]|\([^()]*\))*\)"
    rf"|\b(?P<name>{'|'.join(sorted(NAMES, key=len, reverse=True))})\b"
)
_LITERAL = re.compile(r"\b(?:U?Int(?:8|16|32|64)|Float(?:32|64))\((-?[\d.]+)\)")
_TIMES = {"Time32": "TIME", "Time64": "TIME"}


def translated(text: str) -> str:
    """Replace type names by SQL names, and literals by their values, except in quoted text."""
    return _NAMED.sub(_word, _LITERAL.sub(r"\1", text))


def _word(match: re.Match[str]) -> str:
    if match["quoted"]:
        return match["quoted"]
    if match["decimal"]:
        return "DECIMAL"
    if match["time"]:
        return _TIMES.get(match["time"], match["time"].upper())
    return NAMES[match["name"]]
