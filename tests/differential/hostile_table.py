"""One table with the values that databases treat differently, as a dataset."""

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from tests.differential import datasets
from tests.differential.datasets import Dataset

NAME = "h"
_ROWS = 120
_INTEGERS = (0, 1, -1, 2, 7, 7, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1, 4_000_000_000)
_SMALL = (0, 1, -1, 5, 2**15 - 1, -(2**15))
_UNSIGNED = (0, 1, 7, 7, 2**31, 2**32 - 1)
_DOUBLES = (0.0, 0.5, -1.5, 0.1, 1e308, 5e-324, 2.0**53)
INFINITE = float("inf")
ALL = (-0.0, float("nan"), INFINITE, -INFINITE)
"""Doubles that not all databases have."""
_PRICES = ("0.00", "0.01", "-0.01", "1.50", "9999999999999.99", "-9999999999999.99", "7.00")
_HUGE = (
    "0", "0.0000000001", "-0.0000000001", "9999999999999999999999999999.9999999999",
    "-9999999999999999999999999999.9999999999", "1", "123456789012345678.5", "0.1",
)  # fmt: skip
_TEXTS = (
    "", " ", "a", "a ", "a  ", "A", "b", "B", "ab", "Ab", "aB", "ä", "Ä", "a\u0308", "ß", "ss",
    "é", "e\u0301", "i", "I", "\u0131", "\u0130", "\ufb01", "\U0001f600", "\uffff",
    "a\nb", "a\tb", "%", "_", "a%b",
    "\\", "'", '"', "10", "9", "null", "NULL", "\u200b", "x" * 300,
)  # fmt: skip
_DAYS = (
    dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31),
    dt.date(2024, 2, 29), dt.date(1582, 10, 10), dt.date(1000, 1, 1),
)  # fmt: skip
_MOMENTS = (
    dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 30, 15, 123_456), dt.datetime(2024, 3, 31, 2, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 2, 29, 12, 30, 15),
)  # fmt: skip
COLUMNS = {
    "id": "int", "i": "int", "j": "int", "s": "int", "f": "float", "g": "float", "m": "decimal",
    "w": "decimal", "t": "text", "u": "text", "d": "date", "b": "bool", "at": "moment",
    "k": "uint", "q": "uint",
}  # fmt: skip
"""The columns and what they hold."""


def build(
    folder: Path,
    odd_doubles: Sequence[float] = ALL,
    *,
    has_unsigned: bool = False,
    has_far_moments: bool = True,
) -> Dataset:
    """Write the table, with those odd doubles that a database has.

    Without unsigned integers, their columns have signed ones. Far moments are those that have no
    nanoseconds of 64 bits.
    """
    found = rows(odd_doubles, has_unsigned=has_unsigned)
    if not has_far_moments:
        place = found.schema.get_field_index("at")
        near = [
            each if each is None or 1700 < each.year < 2200 else None
            for each in found.column(place).to_pylist()
        ]
        found = found.set_column(place, found.schema[place], pa.array(near, pa.timestamp("us")))
    datasets.write(folder / NAME, found, (0.4, 0.6))
    return Dataset("hostile", folder)


def rows(odd_doubles: Sequence[float], *, has_unsigned: bool = False) -> pa.Table:
    """Return the rows, the same ones every time."""
    chance = random.Random(34)
    doubles = (*_DOUBLES, *odd_doubles)
    largest = (2**64 - 1, 2**63) if has_unsigned else (2**63 - 1,)

    def chosen(values: Sequence[object], type_: pa.DataType) -> pa.Array:
        return pa.array([chance.choice((*values, None)) for _ in range(_ROWS)], type_)

    return pa.table({
        "id": pa.array(chance.sample(range(_ROWS), _ROWS), pa.int64()),
        "i": chosen(_INTEGERS, pa.int64()),
        "j": chosen((-3, 0, 1, 2, 2, 50), pa.int32()),
        "s": chosen(_SMALL, pa.int16()),
        "f": chosen(doubles, pa.float64()),
        "g": chosen((0.0, 0.25, -2.5, 1024.0), pa.float64()),
        "m": chosen([Decimal(each) for each in _PRICES], pa.decimal128(15, 2)),
        "w": chosen([Decimal(each) for each in _HUGE], pa.decimal128(38, 10)),
        "t": chosen(_TEXTS, pa.string()),
        "u": chosen(("a", "A", "a ", "b", ""), pa.string()),
        "d": chosen(_DAYS, pa.date32()),
        "b": chosen((True, False), pa.bool_()),
        "at": chosen(_MOMENTS, pa.timestamp("us")),
        "k": chosen(_UNSIGNED, pa.uint32() if has_unsigned else pa.int64()),
        "q": chosen((*_UNSIGNED, *largest), pa.uint64() if has_unsigned else pa.int64()),
    })  # fmt: skip


LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "32768"),
    "uint": ("0", "1", "7", "-1", "4294967295", "4294967296", "9223372036854775807"),
    "float": ("0.0", "-0.0", "0.1", "0.5", "1e308", "CAST('NaN' AS DOUBLE)",
              "CAST('Infinity' AS DOUBLE)"),
    "decimal": (
        "CAST('1.50' AS DECIMAL(15, 2))",
        *(f"CAST('{each}' AS DECIMAL(38, 10))" for each in ("0", "0.01", "1.5", *_HUGE[1:4])),
    ),
    "text": tuple("'" + each.replace("'", "''") + "'" for each in _TEXTS),
    "date": tuple(f"DATE '{each}'" for each in _DAYS),
    "bool": ("TRUE", "FALSE"),
    "moment": tuple(f"TIMESTAMP '{each}'" for each in _MOMENTS),
}  # fmt: skip
"""Literals of each kind, as SQL."""
