from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.documents import numbers, shape


def _column(*values: Any) -> tuple[pa.DataType, bool]:
    columns = shape.shape_of([{"x": value} for value in values], "t")
    return columns.schema.field("x").type, "x" in columns.texts


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, None], pa.int64()),
        ([True], pa.bool_()),
        ([1, 1.5], pa.float64()),
        (["a"], pa.string()),
        ([b"a"], pa.binary()),
        ([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")),
        ([2**63], pa.decimal128(38, 0)),
        ([10**40], pa.decimal256(76, 0)),
        ([Decimal("1.50"), 2], pa.decimal128(38, 2)),
        ([Decimal("0.001"), Decimal("1E+3")], pa.decimal128(38, 3)),
        ([numbers.exact("1.5"), 1], pa.float64()),
        ([numbers.exact("9007199254740993")], pa.int64()),
        ([numbers.exact("1.2345678901234567890123")], pa.decimal128(38, 22)),
        ([[1], [None, 2], []], pa.list_(pa.int64())),
        ([{"a": 1}, {"b": "x"}, {}], pa.struct({"a": pa.int64(), "b": pa.string()})),
        ([[{"a": Decimal("1.5")}]], pa.list_(pa.struct({"a": pa.decimal128(38, 1)}))),
    ],
)
def test_values_have_one_type(values: list[Any], type_: pa.DataType) -> None:
    assert _column(*values) == (type_, False)


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [{"a": 1}, {"a": [1]}],
        [[1, "a"]],
        [None, [None], {"a": 1}],
        [None],
        [{}],
        [numbers.exact("1.5"), numbers.exact("1.2345678901234567890123")],
        [{"a": Decimal("1.5")}, {"a": 0.1}],
        [Decimal("NaN")],
        [Decimal("1E-80")],
        [object()],
        [{f"field{number}": 1 for number in range(300)}],
    ],
)
def test_values_that_disagree_are_text(values: list[Any]) -> None:
    assert _column(*values) == (pa.string(), True)


def test_deep_values_are_text() -> None:
    value: Any = 1
    for _ in range(40):
        value = [value]
    assert _column(value) == (pa.string(), True)


def test_columns_have_the_order_of_their_appearance() -> None:
    columns = shape.shape_of([{"b": 1}, {"a": "x", "b": None}], "t")
    assert columns.schema == pa.schema({"b": pa.int64(), "a": pa.string()})


def test_declared_texts_take_every_value() -> None:
    fields = (pa.field("a", pa.string()), pa.field("b", pa.int64()))
    assert shape.declared_shape(fields).texts == {"a"}


def test_too_many_columns_are_an_error() -> None:
    with pytest.raises(DatasetError, match="more than 5,000 columns"):
        shape.shape_of([{f"c{number}": 1} for number in range(5_001)], "t")
