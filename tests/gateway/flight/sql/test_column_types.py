"""The names that drivers show for types."""

import pyarrow as pa
import pytest

from caraway_gateway.flight.sql import column_types


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.bool_(), "BOOLEAN"),
        (pa.int8(), "TINYINT"),
        (pa.int16(), "SMALLINT"),
        (pa.int32(), "INT"),
        (pa.int64(), "BIGINT"),
        (pa.uint8(), "TINYINT UNSIGNED"),
        (pa.uint64(), "BIGINT UNSIGNED"),
        (pa.float32(), "REAL"),
        (pa.float64(), "DOUBLE"),
        (pa.decimal128(12, 2), "DECIMAL"),
        (pa.decimal256(50, 2), "DECIMAL"),
        (pa.string(), "VARCHAR"),
        (pa.large_string(), "VARCHAR"),
        (pa.string_view(), "VARCHAR"),
        (pa.dictionary(pa.int32(), pa.string()), "VARCHAR"),
        (pa.binary(), "BYTEA"),
        (pa.binary(16), "BYTEA"),
        (pa.binary_view(), "BYTEA"),
        (pa.date32(), "DATE"),
        (pa.time64("us"), "TIME"),
        (pa.timestamp("us"), "TIMESTAMP"),
        (pa.timestamp("ns", "UTC"), "TIMESTAMP WITH TIME ZONE"),
        (pa.duration("s"), "INTERVAL"),
        (pa.month_day_nano_interval(), "INTERVAL"),
        (pa.list_(pa.list_(pa.int64())), "BIGINT[][]"),
        (pa.list_(pa.float32(), 3), "REAL[]"),
        (pa.struct([("a", pa.int64())]), "STRUCT"),
        (pa.map_(pa.string(), pa.int64()), "MAP"),
        (pa.null(), "NULL"),
    ],
)  # fmt: skip
def test_name_of_a_type(kind: pa.DataType, expected: str) -> None:
    assert column_types.name(kind) == expected


def test_decimals_tell_their_precision_and_other_metadata_stays() -> None:
    column = pa.field("a", pa.decimal128(12, 2), nullable=False, metadata={"other": "x"})
    found = column_types.described(column)
    assert found.equals(column)
    assert found.metadata == {
        b"other": b"x",
        b"ARROW:FLIGHT:SQL:TYPE_NAME": b"DECIMAL",
        b"ARROW:FLIGHT:SQL:PRECISION": b"12",
        b"ARROW:FLIGHT:SQL:SCALE": b"2",
    }
