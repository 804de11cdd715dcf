"""The values of the parameters of requests."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import ParametersError
from caraway_engine.statements import scalars


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, pa.null()),
        (True, pa.bool_()),
        (0, pa.int64()),
        (2**63 - 1, pa.int64()),
        (-(2**63), pa.int64()),
        (1.0, pa.float64()),
        (-0.0, pa.float64()),
        ("", pa.string()),
        ("it's \x00 \U0001f600", pa.string()),
        ([], pa.list_(pa.null())),
        ([None], pa.list_(pa.null())),
        ([1, None], pa.list_(pa.int64())),
        ([["a"], []], pa.list_(pa.list_(pa.string()))),
    ],
)
def test_a_value_has_the_type_that_json_gives_it(value: Any, type_: pa.DataType) -> None:
    found = scalars.bind("1", value)
    assert found.type == type_
    assert found.as_py() == value and str(found.as_py()) == str(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, 10**38 - 1, -(10**38) + 1])
def test_a_long_integer_is_a_decimal(value: int) -> None:
    found = scalars.bind("1", value)
    assert pa.types.is_decimal(found.type) and found.type.scale == 0
    assert found.as_py() == Decimal(value)
    assert scalars.bind("1", [value]).as_py() == [Decimal(value)]


@pytest.mark.parametrize(
    "value", [{}, {"a": 1}, [{"a": 1}], [1, "a"], [True, "a"], [[1], 2], 10**80, [10**80], object()]
)
def test_what_has_no_type_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ParametersError, match=r"parameter \$of_user: .*; use null, true, false"):
        scalars.bind("of_user", value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=2), each),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(JSON)
def test_anything_that_json_says_is_bound_or_refused_with_words(value: Any) -> None:
    try:
        found = scalars.bind("p", value)
    except ParametersError as exc:
        assert "$p" in exc.message
    else:
        assert isinstance(found, pa.Scalar)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([None], pa.list_(pa.string())),
        pa.array([None], pa.list_(pa.int8(), 2)),
        pa.array([{"a": [None, ["x"]], "b": None}]),
    ],
    ids=lambda each: str(each.type),
)
def test_what_pyarrow_cannot_append_is_within_a_structure(array: pa.Array) -> None:
    values = scalars.values({"a": ArrowValue.from_array(array), "b": 1})
    pa.array([values["a"]], values["a"].type)
    sql = scalars.within("SELECT $a, $b", values)
    assert sql == "SELECT get_field($a, 'caraway_value'), $b"
    assert values["a"].as_py() == {"caraway_value": array[0].as_py()}


def test_other_values_are_bound_as_they_are() -> None:
    array = pa.array([[1, None]], pa.list_(pa.int8()))
    values = scalars.values({"a": ArrowValue.from_array(array)})
    assert values["a"] == array[0]
    assert scalars.within("SELECT $a", values) == "SELECT $a"
