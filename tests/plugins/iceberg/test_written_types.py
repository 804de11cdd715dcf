"""Rows that are written for Iceberg have types that it holds."""

import pyarrow as pa
import pytest

from caraway_plugins.iceberg import column_types, written_types

TYPES = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"),
    pa.decimal128(12, 2), pa.decimal256(30, 2), pa.string(), pa.string_view(), pa.large_string(),
    pa.binary(), pa.binary_view(), pa.binary(4), pa.dictionary(pa.int8(), pa.string()),
    pa.list_(pa.uint64()), pa.large_list(pa.uint8()), pa.list_(pa.float32(), 3),
    pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.string_view()))]),
    pa.map_(pa.string(), pa.uint16()),
]  # fmt: skip


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_each_type_is_written_as_one_that_iceberg_has(type_: pa.DataType) -> None:
    (made,) = written_types.columns(pa.schema([("a", type_)]))
    column_types.schema(pa.schema([made]))
    assert written_types.written(made.type) == made.type


@pytest.mark.parametrize("type_", [pa.duration("s"), pa.month_day_nano_interval()], ids=str)
def test_types_without_a_form_stay_and_are_refused(type_: pa.DataType) -> None:
    assert written_types.written(type_) == type_
    with pytest.raises(column_types.NoIcebergTypeError, match="column 'a' is"):
        column_types.schema(pa.schema([("a", type_)]))
