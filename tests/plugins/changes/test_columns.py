import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_plugins.changes import columns
from caraway_plugins.changes.columns import BadValueError, ImpreciseError
from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.values import UNAVAILABLE

MILLIS, MICROS, NANOS = (
    Meaning(f"io.debezium.time.{name}") for name in ("Timestamp", "MicroTimestamp", "NanoTimestamp")
)
SCALED = Meaning("org.apache.kafka.connect.data.Decimal", 2)
PRICE = pa.decimal128(10, 2)
NEST = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))])
DAY = dt.date(2024, 1, 2)
NOON = dt.datetime(2024, 1, 2, 12)


@pytest.mark.parametrize(
    ("given", "type_", "meaning", "read"),
    [
        ([1, None, "-7"], pa.int64(), UNKNOWN, [1, None, -7]),
        ([2**64 - 1], pa.uint64(), UNKNOWN, [2**64 - 1]),
        ([1, 2.5, "3.5", None], pa.float64(), UNKNOWN, [1.0, 2.5, 3.5, None]),
        ([1.5], pa.float32(), UNKNOWN, [1.5]),
        (["-Infinity"], pa.float32(), UNKNOWN, [-math.inf]),
        ([True, 0, "true", None], pa.bool_(), UNKNOWN, [True, False, True, None]),
        ([5, 10**7, "2.50"], PRICE, UNKNOWN, [Decimal(5), Decimal(10**7), Decimal("2.50")]),
        (["AQ==", "/w=="], PRICE, SCALED, [Decimal("0.01"), Decimal("-0.01")]),
        ([{"scale": 1, "value": "AQ=="}], PRICE, UNKNOWN, [Decimal("0.10")]),
        ([{"a": 1}, "x", [1, "2"]], pa.string(), UNKNOWN, ['{"a":1}', "x", '[1,"2"]']),
        (["AQ==", b"x", None], pa.binary(), UNKNOWN, [b"\1", b"x", None]),
        ([19724, "2024-01-02", "2024-01-02Z", DAY], pa.date32(), UNKNOWN, [DAY] * 4),
        ([19724 * 86_400_000], pa.date32(), MILLIS, [DAY]),
        ([1704196800000], pa.timestamp("us"), MILLIS, [NOON]),
        ([1704196800000000], pa.timestamp("us"), UNKNOWN, [NOON]),
        ([1704196800000], pa.timestamp("ms"), UNKNOWN, [NOON]),
        ([1704196800000], pa.timestamp("s"), UNKNOWN, [NOON]),
        (["2024-01-02T12:00:00Z", "2024-01-02 14:00:00+02:00", NOON], pa.timestamp("us"),
         UNKNOWN, [NOON] * 3),
        ([5_000, "00:00:00.005", dt.time(0, 0, 0, 5000)], pa.time64("us"), UNKNOWN,
         [dt.time(0, 0, 0, 5000)] * 3),
        ([[1, "2"], None, [], [None]], pa.list_(pa.int32()), UNKNOWN, [[1, 2], None, [], [None]]),
        ([{"a": "1", "b": ["2024-01-02"]}, None, {}], NEST, UNKNOWN,
         [{"a": 1, "b": [DAY]}, None, {"a": None, "b": None}]),
        ([[5]], pa.list_(pa.timestamp("us")), Meaning(items=MILLIS),
         [[dt.datetime(1970, 1, 1, 0, 0, 0, 5000)]]),
        ([], pa.int64(), UNKNOWN, []),
    ],
)  # fmt: skip
def test_values_are_read_as_their_column_is_declared(
    given: list[Any], type_: pa.DataType, meaning: Meaning, read: list[Any]
) -> None:
    found = columns.array(given, type_, meaning)

    assert found.type == type_
    assert found.to_pylist() == read


def test_time_zones_and_nanoseconds_are_kept() -> None:
    found = columns.array(["2024-01-02T03:04:05.123456789+02:00"], pa.timestamp("ns", "UTC"))

    assert found.cast(pa.int64()).to_pylist() == [1704157445123456789]


@pytest.mark.parametrize(
    ("wrong", "type_", "says"),
    [
        (1.5, pa.int64(), "not a number"),
        (True, pa.int64(), "not a boolean"),
        ("1x", pa.int64(), "not a string"),
        (300, pa.int8(), "does not fit in int8"),
        (2**63, pa.int64(), "does not fit"),
        (1e300, pa.float32(), "does not fit"),
        ("wide", pa.float64(), "a number is expected"),
        (2, pa.bool_(), "true or false"),
        ("1.234", PRICE, "does not fit"),
        (10**9, PRICE, "does not fit"),
        ("Infinity", PRICE, "a decimal is expected"),
        ("AQ==", PRICE, "Base64 needs a schema that gives the scale"),
        (5, pa.string(), "not an integer"),
        ("\ud800", pa.string(), "does not fit"),
        (UNAVAILABLE, pa.string(), "REPLICA IDENTITY FULL"),
        ("X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", pa.binary(), "REPLICA IDENTITY FULL"),
        ("%%", pa.binary(), "Base64"),
        (2**40, pa.date32(), "does not fit"),
        ("2024-01-02T01:00:00Z", pa.date32(), "a date is expected"),
        ("yesterday", pa.timestamp("us"), "microseconds since 1970"),
        (2**63, pa.timestamp("us"), "does not fit"),
        (86_400_000_000, pa.time64("us"), "a time of day"),
        (5, pa.list_(pa.int32()), "a list is expected"),
        (5, NEST, "an object is expected"),
    ],
)
def test_value_that_does_not_fit_is_named_by_its_position(
    wrong: Any, type_: pa.DataType, says: str
) -> None:
    with pytest.raises(BadValueError, match=says) as caught:
        columns.array([None, wrong, None], type_)

    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("wrong", "inner"), [({"a": "x"}, ".a"), ({"c": 1}, ".c"), ({"b": ["2024-01-01", "z"]}, ".b[]")]
)
def test_place_inside_a_nested_value_is_named(wrong: Any, inner: str) -> None:
    with pytest.raises(BadValueError) as caught:
        columns.array([{}, {"b": ["2024-01-01"]}, wrong], NEST)

    assert (caught.value.index, caught.value.inner) == (2, inner)


def test_double_that_may_have_lost_digits_of_a_decimal_is_not_taken() -> None:
    for value, type_ in (
        (1.2345678901234567, PRICE),
        ([1.2345678901234567], pa.list_(PRICE)),
        ({"p": 1.2345678901234567}, pa.struct([("p", PRICE)])),
    ):
        with pytest.raises(ImpreciseError):
            columns.array([value], type_)
        with pytest.raises(BadValueError, match="does not fit"):
            columns.array([value], type_, is_exact=True)


@given(
    st.lists(st.integers(-(2**53), 2**53), min_size=1),
    st.sampled_from([MILLIS, MICROS, NANOS]),
    st.sampled_from(["s", "ms", "us"]),
)
def test_bulk_and_single_readings_of_timestamps_agree(
    given: list[int], meaning: Meaning, unit: str
) -> None:
    type_ = pa.timestamp(unit)

    def read(values: list[Any]) -> Any:
        try:
            return columns.array(values, type_, meaning).cast(pa.int64()).to_pylist()
        except BadValueError as exc:
            return exc.index

    # A string among them makes all values take the slow path.
    alone = read([*given, "1970-01-01"])

    assert read(given) == (alone if isinstance(alone, int) else alone[:-1])
