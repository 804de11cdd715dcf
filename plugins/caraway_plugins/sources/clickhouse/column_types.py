"""Types of ClickHouse as those of Arrow."""

import re

import pyarrow as pa

from caraway_core.tables import RemoteColumn

_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)|SimpleAggregateFunction\(\w+, (.*)\)")
_DECIMAL = re.compile(r"Decimal\((\d+), (\d+)\)")
_MOMENT = re.compile(r"DateTime64\((\d)(?:, '.*')?\)")
_FIXED = re.compile(r"FixedString\(\d+\)")
_ARRAY = re.compile(r"Array\((.*)\)")
_MOST_DIGITS = 38
_SIMPLE = {
    "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(),
    "UInt8": pa.uint8(), "UInt16": pa.uint16(), "UInt32": pa.uint32(), "UInt64": pa.uint64(),
    "Float32": pa.float32(), "Float64": pa.float64(), "Bool": pa.bool_(), "String": pa.string(),
    "Date": pa.date32(), "Date32": pa.date32(),
}  # fmt: skip
_IN_ARRAYS = frozenset(_SIMPLE) - {"Date"}
_UNITS = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")


def column(name: str, written: str) -> RemoteColumn | None:
    """Return a column of a type; None if it has no values that can be read.

    Types that Arrow has not, such as UUID and Enum, are read as text.
    """
    inner = _unwrapped(written)
    if inner.startswith("AggregateFunction("):
        return None
    if (type_ := _SIMPLE.get(inner)) is not None:
        return RemoteColumn(name, type_, is_comparable=inner != "Float32")
    if (found := _DECIMAL.fullmatch(inner)) and int(found[1]) <= _MOST_DIGITS:
        decimal = pa.decimal128(int(found[1]), int(found[2]))
        return RemoteColumn(name, decimal, is_comparable=True)
    if inner == "DateTime" or inner.startswith("DateTime("):
        return RemoteColumn(name, pa.timestamp("s", "UTC"), is_comparable=True)
    if found := _MOMENT.fullmatch(inner):
        unit = _UNITS[int(found[1])]
        return RemoteColumn(name, pa.timestamp(unit, "UTC"), is_comparable=True)
    if _FIXED.fullmatch(inner):
        return RemoteColumn(name, pa.binary())
    if (found := _ARRAY.fullmatch(inner)) and (item := _unwrapped(found[1])) in _IN_ARRAYS:
        return RemoteColumn(name, pa.list_(_SIMPLE[item]))
    return RemoteColumn(name, pa.string(), is_text=True)


def _unwrapped(written: str) -> str:
    while found := _WRAPPED.fullmatch(written):
        written = found[1] or found[2]
    return written
