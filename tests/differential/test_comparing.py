"""The comparer detects every kind of wrong answer."""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError, InvalidQueryError
from tests.differential.comparing import TOTAL, Order, difference

VALUES = st.one_of(st.none(), st.integers(-3, 3))
FLOATS = st.one_of(st.none(), st.floats(width=64))
TABLES = st.lists(st.tuples(VALUES, FLOATS), min_size=1, max_size=12)


def table(rows: Sequence[tuple[int | None, float | None]]) -> pa.Table:
    keys, floats = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"k": pa.array(keys, pa.int64()), "f": pa.array(floats, pa.float64())})


def one(value: Any, type_: pa.DataType) -> pa.Table:
    return pa.table({"v": pa.array([value], type_)})


@given(TABLES, st.randoms())
def test_shuffled_rows_are_the_same_answer(rows: list[Any], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert difference(table(rows), table(shuffled)) is None


@given(TABLES, st.data())
def test_missing_row_is_detected(rows: list[Any], data: Any) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    assert difference(table(rows), table(rows[:place] + rows[place + 1 :]))


@given(TABLES, st.data())
def test_duplicated_row_is_detected(rows: list[Any], data: Any) -> None:
    twice = data.draw(st.sampled_from(rows))
    assert difference(table(rows), table([*rows, twice]))


@given(TABLES, st.data())
def test_replaced_row_is_detected(rows: list[Any], data: Any) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:place], (99, rows[place][1]), *rows[place + 1 :]]
    assert difference(table(rows), table(changed))


@given(st.lists(st.tuples(VALUES, st.floats(-1e300, 1e300)), min_size=1, max_size=12))
def test_sums_in_another_order_are_the_same_answer(rows: list[Any]) -> None:
    moved = [(k, f * (1 + 1e-12)) for k, f in rows]
    assert difference(table(rows), table(moved)) is None


@given(st.floats(min_value=1e-3, max_value=1e300), st.integers(0, 3))
def test_different_number_is_detected(value: float, place: int) -> None:
    floats = [(1, value)] * 4
    changed = [*floats[:place], (1, value * (1 + 1e-7)), *floats[place + 1 :]]
    assert difference(table(floats), table(changed))


def test_near_numbers_find_their_partners() -> None:
    expected = pa.table({"a": [1.0, 1.0 + 1e-12], "b": [1.0, 2.0]})
    actual = pa.table({"a": [1.0, 1.0 + 1e-12], "b": [2.0, 1.0]})
    assert difference(expected, actual) is None


def test_many_zeros_of_both_signs_find_their_partners() -> None:
    zeros = [0.0, -0.0] * 400
    expected = pa.table({"a": zeros})
    assert difference(expected, pa.table({"a": zeros[::-1]})) is None
    assert difference(expected, pa.table({"a": [*zeros[1:], -0.0]})) is not None


def test_numbers_that_share_a_partner_are_detected() -> None:
    expected = pa.table({"a": [1.0, 1.0 + 1e-12, 5.0]})
    actual = pa.table({"a": [1.0, 5.0, 5.0]})
    assert difference(expected, actual)


def test_swapped_rows_are_detected_in_a_total_order() -> None:
    expected, actual = pa.table({"a": [1, 2, 3]}), pa.table({"a": [1, 3, 2]})
    assert difference(expected, expected, TOTAL) is None
    assert difference(expected, actual) is None
    assert difference(expected, actual, TOTAL)


def test_ties_have_any_order_but_keys_do_not() -> None:
    expected = pa.table({"k": [1, 1, 2], "v": ["a", "b", "c"]})
    tied = pa.table({"k": [1, 1, 2], "v": ["b", "a", "c"]})
    unsorted = pa.table({"k": [2, 1, 1], "v": ["c", "a", "b"]})
    other = pa.table({"k": [1, 1, 2], "v": ["a", "a", "c"]})
    by_key = Order("keys", (0,))
    assert difference(expected, tied, by_key) is None
    assert difference(expected, unsorted, by_key)
    assert difference(expected, other, by_key)


def test_limit_takes_any_rows_of_the_whole_but_no_others() -> None:
    whole = pa.table({"k": [1, 1, 2], "v": ["a", "b", "c"]})
    expected = pa.table({"k": [1], "v": ["a"]})
    some, by_key = Order(whole=whole), Order("keys", (0,), whole)
    assert difference(expected, pa.table({"k": [1], "v": ["b"]}), by_key) is None
    assert difference(expected, pa.table({"k": [2], "v": ["c"]}), some) is None
    assert difference(expected, pa.table({"k": [2], "v": ["c"]}), by_key)
    assert difference(expected, pa.table({"k": [1], "v": ["x"]}), some)
    assert difference(expected, whole.slice(0, 2), some)
    twice = pa.table({"k": [1, 1], "v": ["a", "a"]})
    assert difference(whole.slice(0, 2), twice, some)


def test_names_and_types_must_be_equal() -> None:
    expected = pa.table({"a": pa.array([1], pa.int64())})
    assert difference(expected, expected.rename_columns(["A"]))
    assert difference(expected, expected.cast(pa.schema([("a", pa.int32())])))
    strings = pa.table({"a": ["x"]})
    assert difference(strings, strings.cast(pa.schema([("a", pa.string_view())])))
    assert difference(one(Decimal("1.0"), pa.decimal128(9, 1)), one(Decimal(1), pa.decimal128(9)))
    zoned = one(0, pa.timestamp("us", "UTC"))
    assert difference(zoned, one(0, pa.timestamp("us")))
    assert difference(zoned, one(0, pa.timestamp("us", "+00:00")))


def test_types_must_be_equal_also_without_rows() -> None:
    none = pa.table({"a": pa.array([], pa.int64())})
    assert difference(none, none) is None
    assert difference(none, pa.table({"a": pa.array([], pa.int32())}))


def test_whether_a_column_may_hold_null_is_no_difference() -> None:
    item = pa.field("item", pa.int64(), nullable=False)
    strict = pa.table([[[1]]], pa.schema([pa.field("a", pa.list_(item), nullable=False)]))
    assert difference(strict, one([1], pa.list_(pa.int64())).rename_columns(["a"])) is None


@pytest.mark.parametrize(
    ("one_value", "another"),
    [(0.0, -0.0), (math.nan, None), (math.nan, 1.0), (math.inf, -math.inf), (math.inf, 1e308)],
)
def test_special_floats_differ(one_value: float, another: float | None) -> None:
    expected, actual = one(one_value, pa.float64()), one(another, pa.float64())
    assert difference(expected, expected) is None
    assert difference(expected, actual) and difference(actual, expected)


NESTED = pa.struct([("f", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.int64()))])


@pytest.mark.parametrize(
    ("value", "another", "type_"),
    [
        ([1, None], [1], pa.list_(pa.int64())),
        ([], None, pa.list_(pa.int64())),
        ([[1], []], [[], [1]], pa.list_(pa.list_(pa.int64()))),
        ({"f": [1.0], "m": [("a", 1)]}, {"f": [1.1], "m": [("a", 1)]}, NESTED),
        ({"f": [1.0], "m": [("a", 1)]}, {"f": [1.0], "m": [("a", 2)]}, NESTED),
        ({"f": None, "m": None}, None, NESTED),
        (Decimal("1.10"), Decimal("1.11"), pa.decimal128(9, 2)),
        (10**9, 10**9 + 1, pa.timestamp("ns")),
        (10**9, 10**9 + 1, pa.duration("us")),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 2), pa.date32()),
        (dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 5), pa.time64("ns")),
        ((1, 2, 3), (1, 2, 4), pa.month_day_nano_interval()),
        (b"a", b"b", pa.binary()),
        ("a", "a ", pa.string_view()),
        (True, None, pa.bool_()),
    ],
)
def test_different_values_are_detected_in_every_type(
    value: Any, another: Any, type_: pa.DataType
) -> None:
    expected, actual = one(value, type_), one(another, type_)
    assert difference(expected, expected) is None
    assert difference(expected, actual) and difference(actual, expected)


def test_rows_without_columns_are_counted() -> None:
    two, three = (pa.table({"a": range(n)}).select([]) for n in (2, 3))
    assert difference(two, two) is None
    assert difference(two, three)


def test_errors_must_be_of_one_class() -> None:
    invalid = InvalidQueryError("division by zero")
    assert difference(invalid, InvalidQueryError("Divide by zero")) is None
    assert difference(invalid, ExecutionError("division by zero"))
    assert difference(invalid, one(1, pa.int64()))
    assert difference(one(1, pa.int64()), invalid)
