"""The names of Arrow types in the versioned JSON format, as clients written in Rust expect them."""

import pyarrow as pa
import pytest

from caraway_serving.formats.datatypes import display

INNER = pa.struct([pa.field("a", pa.int8()), pa.field("b", pa.list_(pa.string_view()))])
NAMED = [
    (pa.null(), "Null"),
    (pa.bool_(), "Boolean"),
    (pa.int8(), "Int8"),
    (pa.uint64(), "UInt64"),
    (pa.float16(), "Float16"),
    (pa.float32(), "Float32"),
    (pa.float64(), "Float64"),
    (pa.string(), "Utf8"),
    (pa.large_string(), "LargeUtf8"),
    (pa.string_view(), "Utf8View"),
    (pa.binary(), "Binary"),
    (pa.large_binary(), "LargeBinary"),
    (pa.binary_view(), "BinaryView"),
    (pa.binary(16), "FixedSizeBinary(16)"),
    (pa.date32(), "Date32"),
    (pa.date64(), "Date64"),
    (pa.time32("s"), "Time32(Second)"),
    (pa.time32("ms"), "Time32(Millisecond)"),
    (pa.time64("us"), "Time64(Microsecond)"),
    (pa.time64("ns"), "Time64(Nanosecond)"),
    (pa.timestamp("us"), "Timestamp(Microsecond, None)"),
    (pa.timestamp("ns", "Europe/Berlin"), 'Timestamp(Nanosecond, Some("Europe/Berlin"))'),
    (pa.duration("ms"), "Duration(Millisecond)"),
    (pa.month_day_nano_interval(), "Interval(MonthDayNano)"),
    (pa.decimal32(5, 2), "Decimal32(5, 2)"),
    (pa.decimal128(38, -3), "Decimal128(38, -3)"),
    (pa.decimal256(76, 10), "Decimal256(76, 10)"),
    (pa.dictionary(pa.int16(), pa.string()), "Dictionary(Int16, Utf8)"),
    (pa.list_(pa.int32()), "List(Int32)"),
    (pa.large_list(pa.date32()), "LargeList(Date32)"),
    (pa.list_(pa.float32(), 384), "FixedSizeList(384 x Float32)"),
    (pa.map_(pa.string(), pa.int64()), "Map(Utf8, Int64)"),
    (INNER, 'Struct("a": Int8, "b": List(Utf8View))'),
    (pa.struct([]), "Struct()"),
    (pa.list_(pa.struct([("x", pa.timestamp("s"))])), 'List(Struct("x": Timestamp(Second, None)))'),
]


@pytest.mark.parametrize(("type_", "name"), NAMED, ids=lambda each: str(each)[:40])
def test_type_has_the_name_that_clients_expect(type_: pa.DataType, name: str) -> None:
    assert display(type_) == name


def test_names_tell_types_apart() -> None:
    names = [display(type_) for type_, _ in NAMED]
    assert len(set(names)) == len(names)


def test_type_without_a_name_of_its_own_keeps_that_of_arrow() -> None:
    assert display(pa.list_view(pa.int8())) == str(pa.list_view(pa.int8()))
