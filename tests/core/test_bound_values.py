"""Values of any Arrow type cross whole, and equal ones are equal."""

import decimal
import pickle
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue

VALUES: list[tuple[Any, pa.DataType]] = [
    (None, pa.null()), (None, pa.int64()), (2**64 - 1, pa.uint64()), (True, pa.bool_()),
    (decimal.Decimal("-1.50"), pa.decimal256(60, 2)), ("é\0\U0001f600", pa.string_view()),
    (b"\xff\0", pa.binary(2)), ([1, None], pa.list_(pa.int8())), ([], pa.list_(pa.int8())),
    ({"a": None, "b": [1.5]}, pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float32()))])),
    ("x", pa.dictionary(pa.int8(), pa.string())), (0, pa.timestamp("ns", "Europe/Oslo")),
    (float("nan"), pa.float64()), (-0.0, pa.float64()),
]  # fmt: skip


@pytest.mark.parametrize(("value", "type_"), VALUES, ids=lambda each: str(each)[:20])
def test_a_value_comes_back_with_its_type(value: Any, type_: pa.DataType) -> None:
    array = pa.array([value], type_)
    bound = pickle.loads(pickle.dumps(ArrowValue.from_array(array)))
    assert bound.scalar.type == type_
    assert str(bound.scalar) == str(array[0])
    # Of an array that has more, it is one value, too.
    longer = pa.concat_arrays([pa.array([value, value], type_), array]).slice(2, 1)
    assert str(ArrowValue.from_array(longer).scalar) == str(array[0])


def test_equal_values_are_equal_and_others_are_not() -> None:
    made = [ArrowValue.from_array(pa.array([value], type_)) for value, type_ in VALUES]
    again = [ArrowValue.from_array(pa.array([value], type_)) for value, type_ in VALUES]
    assert made == again and len(set(made)) == len(VALUES)
