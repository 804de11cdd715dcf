import pyarrow as pa
import pytest

from caraway_core.manifest import arrow_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", pa.int64()),
        ("int", pa.int32()),
        ("Integer  Unsigned", pa.uint32()),
        ("uint8", pa.uint8()),
        ("boolean", pa.bool_()),
        ("varchar(20)", pa.string()),
        ("uuid", pa.string()),
        ("real", pa.float32()),
        ("double precision", pa.float64()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("decimal", pa.decimal128(38, 10)),
        ("decimal(50,3)", pa.decimal256(50, 3)),
        ("date", pa.date32()),
        ("time", pa.time64("us")),
        ("time(0)", pa.time32("s")),
        ("timestamp", pa.timestamp("us")),
        ("timestamp(3)", pa.timestamp("ms")),
        ("timestamp with time zone", pa.timestamp("us", "UTC")),
        ("timestamp(9) without time zone", pa.timestamp("ns")),
        ("timestamptz(0)", pa.timestamp("s", "UTC")),
        ("bytea", pa.binary()),
        ("text[]", pa.list_(pa.string())),
        ("list<array<decimal(4,1)>>", pa.list_(pa.list_(pa.decimal128(4, 1)))),
        ("int[][]", pa.list_(pa.list_(pa.int32()))),
    ],
)
def test_column_types(text: str, expected: pa.DataType) -> None:
    assert arrow_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bigit",
        "decimal(77)",
        "decimal(2,3)",
        "decimal(0)",
        "timestamp(4)",
        "list<>",
        "[]",
        "list<nope>",
        "timestamptz with time zone",
        "a" * 10000,
        "int" + "[]" * 5000,
    ],
)
def test_unknown_column_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a column type; known: boolean, tinyint"):
        arrow_type(text)
