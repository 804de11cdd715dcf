"""Files that filters leave out by the bounds of their columns, and bounds that say nothing."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from caraway_core.tables.scanners import ColumnFilter
from caraway_plugins.iceberg.column_types import IcebergField
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.sources.iceberg import bounds
from caraway_plugins.sources.iceberg.data_files import IcebergFile

_LONG = struct.Struct("<q").pack
_INT = struct.Struct("<i").pack


def file(*ends: bytes | None) -> IcebergFile:
    low, high = ends
    return IcebergFile("1", 9, None, "1", 3, (), bounds=((1, low, high),))


def is_kept(type_: Any, ends: tuple[bytes | None, bytes | None], operator: Any, value: Any) -> bool:
    fields = [IcebergField(1, "a", type_, "")]
    return bool(bounds.kept([file(*ends)], [ColumnFilter("a", operator, value)], fields))


FROM_10_TO_20 = (_LONG(10), _LONG(20))


@pytest.mark.parametrize(
    ("operator", "value", "may_pass"),
    [
        ("=", 10, True), ("=", 20, True), ("=", 9, False), ("=", 21, False),
        ("<", 10, False), ("<", 11, True), ("<=", 10, True), ("<=", 9, False),
        (">", 20, False), (">", 19, True), (">=", 20, True), (">=", 21, False),
        ("in", (1, 15), True), ("in", (1, 30), False), ("in", (), False),
        ("<>", 10, True), ("is null", None, True), ("is not null", None, True),
    ],
)  # fmt: skip
def test_operators(operator: str, value: Any, may_pass: bool) -> None:
    assert is_kept("long", FROM_10_TO_20, operator, value) is may_pass


@pytest.mark.parametrize(
    ("type_", "ends", "inside", "outside"),
    [
        ("int", (_INT(-5), _INT(5)), -5, -6),
        ("long", (_INT(-5), _INT(5)), 5, 6),
        ("date", (_INT(0), _INT(1)), date(1970, 1, 2), date(1970, 1, 3)),
        ("timestamp", (_LONG(0), _LONG(1)), datetime(1970, 1, 1), datetime(1970, 1, 2)),
        ("timestamptz", (_LONG(0), _LONG(1)), datetime(1970, 1, 1, tzinfo=UTC),
         datetime(1969, 12, 31, tzinfo=UTC)),
        ("string", (b"b", "ü".encode()), "ü", "a"),
        ("decimal(9, 2)", (b"\xff", b"\x01\x00"), Decimal("2.56"), Decimal("2.57")),
        ("boolean", (b"\x01", b"\x01"), True, False),
    ],
)  # fmt: skip
def test_types(type_: str, ends: tuple[bytes, bytes], inside: Any, outside: Any) -> None:
    assert is_kept(type_, ends, "=", inside)
    assert not is_kept(type_, ends, "=", outside)


@pytest.mark.parametrize(
    ("type_", "ends", "value"),
    [
        ("long", (None, _LONG(1)), 5),
        ("long", (_LONG(1), None), 5),
        ("long", (b"", b""), 5),
        ("long", (b"123", b"123"), 5),
        ("long", (_LONG(1), _LONG(1)), "5"),
        ("string", (b"\xff", b"\xff"), "a"),
        ("timestamp", (_LONG(1), _LONG(1)), datetime(1970, 1, 2, tzinfo=UTC)),
        ("timestamp", (_LONG(2**62), _LONG(2**62)), datetime(1970, 1, 2)),
        ("date", (_INT(2**31 - 1), _INT(2**31 - 1)), date(1970, 1, 2)),
        ("double", (b"\0" * 8, b"\0" * 8), 5),
        ("timestamp_ns", (_LONG(1), _LONG(1)), datetime(1970, 1, 2)),
        ("fixed[8]", (_LONG(1), _LONG(1)), b"a"),
    ],
)
def test_bounds_that_say_nothing_keep_the_file(
    type_: str, ends: tuple[bytes | None, bytes | None], value: Any
) -> None:
    assert is_kept(type_, ends, "=", value)


def test_all_filters_have_to_pass() -> None:
    fields = [IcebergField(1, "a", "long", "")]
    filters = [ColumnFilter("a", ">", 5), ColumnFilter("other", "=", 1)]
    kept, gone = file(_LONG(6), _LONG(6)), file(_LONG(5), _LONG(5))
    assert bounds.kept([gone, kept], filters, fields) == [kept]


def listed(lower: dict[int, bytes], upper: dict[int, bytes]) -> ListedFile:
    return ListedFile(0, "1", "parquet", 1, 9, 0, 0, (), lower=lower, upper=upper)


def test_ranges_are_those_of_numbers_and_days() -> None:
    fields = [
        IcebergField(1, "n", "long", ""), IcebergField(2, "s", "string", ""),
        IcebergField(3, "half", "int", ""), IcebergField(4, "bad", "int", ""),
    ]  # fmt: skip
    lower = {1: _LONG(-1), 2: b"a", 3: _INT(1), 4: b"1"}
    found = bounds.ranges_of(listed(lower, {1: _LONG(5), 2: b"b", 4: b"2"}), fields)
    assert found == {"n": (-1, 5)}
