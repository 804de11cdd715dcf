"""Types of ClickHouse as those of Arrow."""

import pyarrow as pa
import pytest

from caraway_plugins.sources.clickhouse import column_types


@pytest.mark.parametrize(
    ("written", "arrow", "is_comparable"),
    [
        ("Int8", pa.int8(), True),
        ("UInt64", pa.uint64(), True),
        ("Float32", pa.float32(), False),
        ("Float64", pa.float64(), True),
        ("Bool", pa.bool_(), True),
        ("String", pa.string(), True),
        ("Nullable(Int64)", pa.int64(), True),
        ("LowCardinality(Nullable(String))", pa.string(), True),
        ("SimpleAggregateFunction(sum, UInt32)", pa.uint32(), True),
        ("Decimal(38, 10)", pa.decimal128(38, 10), True),
        ("DateTime", pa.timestamp("s", "UTC"), True),
        ("DateTime('Europe/Berlin')", pa.timestamp("s", "UTC"), True),
        ("DateTime64(0)", pa.timestamp("s", "UTC"), True),
        ("DateTime64(3)", pa.timestamp("ms", "UTC"), True),
        ("DateTime64(6, 'UTC')", pa.timestamp("us", "UTC"), True),
        ("DateTime64(9)", pa.timestamp("ns", "UTC"), True),
        ("FixedString(16)", pa.binary(), False),
        ("Array(Int32)", pa.list_(pa.int32()), False),
        ("Array(Nullable(String))", pa.list_(pa.string()), False),
    ],
)
def test_types_that_arrow_has(written: str, arrow: pa.DataType, is_comparable: bool) -> None:
    column = column_types.column("c", written)
    assert column is not None
    assert (column.name, column.type, column.is_text) == ("c", arrow, False)
    assert column.is_comparable is is_comparable


@pytest.mark.parametrize(
    "written",
    ["UUID", "Enum8('a' = 1)", "IPv4", "Int128", "Decimal(76, 10)", "Tuple(Int8, String)",
     "Map(String, Int8)", "Array(Array(Int8))", "Array(Date)", "Array(UUID)", "", "Unknown(x)"],
)  # fmt: skip
def test_other_types_are_read_as_text(written: str) -> None:
    column = column_types.column("c", written)
    assert column is not None
    assert (column.type, column.is_text, column.is_comparable) == (pa.string(), True, False)


def test_states_of_aggregates_have_no_values() -> None:
    assert column_types.column("c", "AggregateFunction(sum, UInt32)") is None
    assert column_types.column("c", "Nullable(AggregateFunction(sum, UInt32))") is None
