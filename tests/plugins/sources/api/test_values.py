"""Values of JSON as values of Arrow's types."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
TYPES = [pa.int64(), pa.int16(), pa.uint8(), pa.float64(), pa.float32(), pa.bool_(), pa.string()]


def column(given: list[Any], type_: pa.DataType, texts: frozenset[str] = frozenset()) -> list[Any]:
    rows = [{"v": value} for value in given]
    found: list[Any] = (
        values.batch(rows, pa.schema([("v", type_)]), texts, "x").column(0).to_pylist()
    )
    return found


@given(st.lists(JSON, min_size=1, max_size=4), st.sampled_from(TYPES))
def test_a_column_has_the_values_or_is_refused(given: list[Any], type_: pa.DataType) -> None:
    try:
        found = column(given, type_)
    except DatasetError:
        return
    for value, kept in zip(given, found, strict=True):
        if pa.types.is_float32(type_) and value is not None:
            continue
        is_rounded = pa.types.is_floating(type_) and isinstance(value, int)
        assert kept == (float(value) if is_rounded else value) and (kept is None) == (value is None)
        assert isinstance(kept, bool) == isinstance(value, bool)


@given(st.lists(JSON, min_size=1, max_size=4))
def test_a_declared_text_takes_every_value(given: list[Any]) -> None:
    for value, kept in zip(given, column(given, pa.string(), frozenset({"v"})), strict=True):
        if value is None or isinstance(value, str):
            assert kept == value
        else:
            assert json.loads(kept) == value


@pytest.mark.parametrize("value", [2**53 + 1, 2**64, -(2**70)])
def test_large_numbers_of_a_column_of_doubles_are_rounded(value: int) -> None:
    assert column([value, 1.5, None], pa.float64()) == [float(value), 1.5, None]


NESTED = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.list_(pa.string()))]))])


def test_nested_values_keep_their_nulls() -> None:
    given = [None, {}, {"a": None, "b": None}, {"a": 1, "b": {}}, {"b": {"c": [None, "x"]}, "z": 1}]
    assert column(given, NESTED) == [
        None,
        {"a": None, "b": None},
        {"a": None, "b": None},
        {"a": 1, "b": {"c": None}},
        {"a": None, "b": {"c": [None, "x"]}},
    ]
    wrongs: list[Any] = [[], "x", 1, {"a": "1"}, {"b": []}, {"b": {"c": "x"}}, {"b": {"c": [1]}}]
    for wrong in wrongs:
        with pytest.raises(DatasetError):
            column([{"a": 1}, wrong], NESTED)
