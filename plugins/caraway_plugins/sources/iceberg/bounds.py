"""Which files can have rows that pass filters, by the bounds of columns that manifests have."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from caraway_core.tables import ranges
from caraway_core.tables.ranges import ColumnRange
from caraway_core.tables.scanners import ColumnFilter
from caraway_plugins.iceberg.column_types import IcebergField
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.sources.iceberg.data_files import IcebergFile

_EPOCH = datetime(1970, 1, 1)
_OPERATORS: Mapping[str, Callable[[Any, Any, Any], bool]] = {
    "=": lambda value, lower, upper: lower <= value <= upper,
    "<": lambda value, lower, upper: lower < value,
    "<=": lambda value, lower, upper: lower <= value,
    ">": lambda value, lower, upper: upper > value,
    ">=": lambda value, lower, upper: upper >= value,
    "in": lambda value, lower, upper: any(lower <= each <= upper for each in value),
}


def kept(
    files: Sequence[IcebergFile], filters: Sequence[ColumnFilter], fields: Sequence[IcebergField]
) -> list[IcebergFile]:
    """Return the files that may have rows which pass all filters."""
    by_name = {each.name: each for each in fields}
    known = [(by_name[each.column], each) for each in filters if each.column in by_name]
    return [each for each in files if all(_may_pass(each, *pair) for pair in known)]


def _may_pass(file: IcebergFile, field: IcebergField, asked: ColumnFilter) -> bool:
    compares = _OPERATORS.get(asked.operator)
    bounds = next((each for each in file.bounds if each[0] == field.id), None)
    if compares is None or bounds is None or not isinstance(field.type, str):
        return True
    _, low, high = bounds
    if low is None or high is None:
        return True
    try:
        lower, upper = _value(field.type, low), _value(field.type, high)
        return compares(asked.value, lower, upper)
    except (ArithmeticError, TypeError, ValueError, struct.error):
        return True  # Bounds of another kind than the value say nothing.


def ranges_of(listed: ListedFile, fields: Sequence[IcebergField]) -> dict[str, ColumnRange]:
    """Return the ranges of columns of numbers and days that the manifest has of a file."""
    found = {}
    for field in fields:
        ends = listed.lower.get(field.id), listed.upper.get(field.id)
        if isinstance(field.type, str) and ends[0] is not None and ends[1] is not None:
            known = _range(field.type, ends[0], ends[1])
            if known is not None:
                found[field.name] = known
    return found


def _range(kind: str, lower: bytes, upper: bytes) -> ColumnRange | None:
    try:
        return ranges.range_of(_value(kind, lower), _value(kind, upper))
    except (ArithmeticError, ValueError, struct.error):
        return None


def _value(kind: str, bound: bytes) -> Any:
    """Return a bound as the value of Python that filters have for this type."""
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        return Decimal(int.from_bytes(bound, "big", signed=True)).scaleb(-scale)
    return _DECODERS[kind](bound) if kind in _DECODERS else _unknown(kind)


def _unknown(kind: str) -> object:
    raise ValueError(kind)


def _integer(bound: bytes) -> int:
    """Return a number of 4 or 8 bytes: a column may have become wider since."""
    if len(bound) not in (4, 8):
        raise ValueError(len(bound))
    return int.from_bytes(bound, "little", signed=True)


def _moment(bound: bytes) -> datetime:
    return _EPOCH + timedelta(microseconds=_integer(bound))


def _time(bound: bytes) -> time:
    return _moment(bound).time()


_DECODERS: Mapping[str, Callable[[bytes], Any]] = {
    "boolean": lambda bound: bound != b"\x00",
    "int": _integer,
    "long": _integer,
    "date": lambda bound: date(1970, 1, 1) + timedelta(days=_integer(bound)),
    "time": _time,
    "timestamp": _moment,
    "timestamptz": lambda bound: _moment(bound).replace(tzinfo=UTC),
    "string": bytes.decode,
}
