import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.partitions.naming import name_of, plain_values, values_of

VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(st.lists(VALUES, max_size=4))
def test_names_give_back_their_values(values: list[Any]) -> None:
    found = values_of(name_of(values))
    assert found == tuple(values)
    assert [type(each) for each in found] == [type(each) for each in values]


def test_names_are_short_json() -> None:
    assert name_of([3]) == "[3]"
    assert name_of(["Łódź", None, True, 1.5]) == '["Łódź",null,true,1.5]'


@pytest.mark.parametrize("name", ["3", '"a"', "", "[1"])
def test_other_texts_are_no_names(name: str) -> None:
    with pytest.raises(ValueError, match=r"names no partition|Expecting"):
        values_of(name)


@pytest.mark.parametrize(
    ("values", "type_", "plain"),
    [
        ([1, None], pa.int8(), [1, None]),
        ([True], pa.bool_(), [True]),
        ([1.5, -0.0, float("nan"), float("inf")], pa.float64(), [1.5, 0.0, "nan", "inf"]),
        (["a", None], pa.string_view(), ["a", None]),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
        ([b"\x00\xff"], pa.binary(), ["00ff"]),
        ([dt.date(2024, 2, 29)], pa.date32(), ["2024-02-29"]),
        ([decimal.Decimal("1.5")], pa.decimal128(9, 2), ["1.50"]),
        ([1], pa.timestamp("ns"), ["1970-01-01 00:00:00.000000001"]),
        ([0], pa.timestamp("s", "Europe/Berlin"), ["1970-01-01 01:00:00+0100"]),
        ([7], pa.duration("s"), ["7"]),
        ([None], pa.null(), [None]),
    ],
)
def test_values_stand_in_names_as_text_or_json(
    values: list[Any], type_: pa.DataType, plain: list[Any]
) -> None:
    assert plain_values(pa.array(values, type_)) == plain
    assert values_of(name_of(plain)) == tuple(plain)


def test_the_zeros_are_one() -> None:
    (zero,) = plain_values(pa.array([-0.0]))
    assert name_of([zero]) == name_of([0.0])


def test_lists_name_no_partition() -> None:
    with pytest.raises(ValueError, match="list<item: int64> cannot name partitions"):
        plain_values(pa.array([[1]]))
