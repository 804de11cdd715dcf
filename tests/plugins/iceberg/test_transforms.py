"""Transforms of partitions have the values that PyIceberg computes."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import transforms as judged
from pyiceberg import types

from caraway_plugins.iceberg import transforms
from caraway_plugins.iceberg.column_types import NoIcebergTypeError

EPOCH = datetime(1970, 1, 1)
DRAWN = random.Random(5)
COUNT = 100
LETTERS = "aü€😀xyz"


def moments() -> list[datetime]:
    return [EPOCH + timedelta(microseconds=DRAWN.randint(-(10**15), 10**16)) for _ in range(COUNT)]


VALUES: list[tuple[pa.DataType, Any, Sequence[Any]]] = [
    (pa.int32(), types.IntegerType(), [DRAWN.randint(-(2**31), 2**31 - 1) for _ in range(COUNT)]),
    (pa.int64(), types.LongType(), [DRAWN.randint(-(2**63), 2**63 - 1) for _ in range(COUNT)]),
    (
        pa.string(),
        types.StringType(),
        ["".join(DRAWN.choices(LETTERS, k=DRAWN.randint(0, 9))) for _ in range(COUNT)],
    ),
    (pa.binary(), types.BinaryType(), [DRAWN.randbytes(DRAWN.randint(0, 9)) for _ in range(COUNT)]),
    (
        pa.decimal128(9, 2),
        types.DecimalType(9, 2),
        [Decimal(DRAWN.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-2) for _ in range(COUNT)],
    ),
    (
        pa.decimal128(38, 5),
        types.DecimalType(38, 5),
        [Decimal(f"{DRAWN.randint(-(10**37), 10**37)}E-5") for _ in range(COUNT)],
    ),
    (pa.date32(), types.DateType(), [each.date() for each in moments()]),
    (pa.timestamp("us"), types.TimestampType(), moments()),
    (
        pa.timestamp("us", "UTC"),
        types.TimestamptzType(),
        [each.replace(tzinfo=UTC) for each in moments()],
    ),
]
TRANSFORMS = [
    judged.IdentityTransform(),
    judged.VoidTransform(),
    judged.BucketTransform(1),
    judged.BucketTransform(16),
    judged.BucketTransform(1000),
    judged.TruncateTransform(1),
    judged.TruncateTransform(3),
    judged.TruncateTransform(1000),
    judged.YearTransform(),
    judged.MonthTransform(),
    judged.DayTransform(),
    judged.HourTransform(),
]


@pytest.mark.parametrize(("arrow", "kind", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_values_are_those_of_another_program(
    arrow: pa.DataType, kind: Any, values: Sequence[Any]
) -> None:
    given = [*values, None]
    compared = 0
    for transform in TRANSFORMS:
        if not transform.can_transform(kind):
            continue
        compute = transform.transform(kind)
        expected = [compute(transforms.physical(each)) for each in given]
        found = transforms.transform(str(transform))(pa.array(given, arrow))
        assert found.to_pylist() == expected, transform
        assert transforms.transform(str(transform))(pa.array([], arrow)).type == found.type
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize("name", ["zorder", "bucket", "bucket[x]", "truncate[-1]", "Year", ""])
def test_unknown_transforms_are_refused(name: str) -> None:
    with pytest.raises(NoIcebergTypeError):
        transforms.transform(name)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (date(1969, 12, 31), -1),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (time(0, 0, 1, 5), 1_000_005),
        ("a", "a"),
        (None, None),
    ],
)
def test_values_that_were_read_are_numbers_again(value: object, number: object) -> None:
    assert transforms.physical(value) == number


@pytest.mark.parametrize(
    ("name", "kind", "result"),
    [
        ("identity", "string", "string"),
        ("truncate[3]", "decimal(9, 2)", "decimal(9, 2)"),
        ("bucket[3]", "string", "int"),
        ("day", "timestamp", "date"),
        ("month", "date", "int"),
    ],
)
def test_types_of_values(name: str, kind: str, result: str) -> None:
    assert transforms.result(name, kind) == result
