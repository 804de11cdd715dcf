"""The ranges of columns, as numbers that order like their values."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

ColumnRange = tuple[float, float]
"""The least and the greatest value of a column, as numbers."""


def number_of(value: object) -> float | None:
    """Return a value as a number that orders like it, or None for other types."""
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            return float(value)
        case datetime():
            return (value - datetime(1970, 1, 1, tzinfo=value.tzinfo)) / timedelta(days=1)
        case date():
            return (value - date(1970, 1, 1)) / timedelta(days=1)
    return None


def range_of(least: object, greatest: object) -> ColumnRange | None:
    """Return the range from one value to another; None for types other than numbers."""
    ends = number_of(least), number_of(greatest)
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def together(ranges: Iterable[Mapping[str, ColumnRange]]) -> dict[str, ColumnRange]:
    """Return the ranges of several parts of a table, by the names of columns."""
    found = dict[str, ColumnRange]()
    for part in ranges:
        for name, (least, greatest) in part.items():
            before = found.get(name, (least, greatest))
            found[name] = min(before[0], least), max(before[1], greatest)
    return found
