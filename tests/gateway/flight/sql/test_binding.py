"""Rows of Arrow columns become the values of parameters."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import ParametersError
from caraway_core.sqltext import placeholders
from caraway_gateway.flight.sql import binding


@pytest.mark.parametrize(
    ("sql", "columns", "values"),
    [
        ("SELECT 1", [], {}),
        ("SELECT ?, ?", ["a", "b"], {"1": 1, "2": 2}),
        ("SELECT $2, $1", ["x", "y"], {"1": 1, "2": 2}),
        ("SELECT $1, $2", ["2", "1"], {"2": 1, "1": 2}),
        ("SELECT $1, $2", ["$2", "$1"], {"2": 1, "1": 2}),
        ("SELECT $a, :b", ["b", ":a"], {"b": 1, "a": 2}),
        ("SELECT $10, $9, $2, $1, $3, $4, $5, $6, $7, $8", [""] * 10,
         {str(n): n for n in range(1, 11)}),
    ],
)  # fmt: skip
def test_columns_are_bound_by_name_or_in_the_order_of_numbers(
    sql: str, columns: list[str], values: dict[str, int]
) -> None:
    rows = pa.Table.from_arrays([pa.array([n + 1]) for n in range(len(columns))], names=columns)
    assert binding.values(sql, rows) == values


@pytest.mark.parametrize(
    ("sql", "columns", "message"),
    [
        ("SELECT $1", [], "has 1 parameters, but 0 columns are bound"),
        ("SELECT 1", ["a"], "has 0 parameters, but 1 columns are bound"),
        ("SELECT $a, $b", ["a"], "has 2 parameters, but 1 columns are bound"),
        ("SELECT $a, $b", ["a", "c"], "columns bound are 'a', 'c', but .* are 'a', 'b'; name each"),
        ("SELECT $a, $b", ["a", "a"], "columns bound are 'a', 'a'"),
        ("SELECT $1, $2", ["$1", "$3"], "columns bound are '1', '3'"),
    ],
)
def test_columns_that_are_not_the_parameters_are_refused(
    sql: str, columns: list[str], message: str
) -> None:
    rows = pa.Table.from_arrays([pa.array([1])] * len(columns), names=columns)
    with pytest.raises(ParametersError, match=message):
        binding.values(sql, rows)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pa.array([0, 7]), 7),
        (pa.array([False, True]), True),
        (pa.array([0.5, 1.5], pa.float32()), 1.5),
        (pa.array(["a", "b"], pa.large_string()), "b"),
        (pa.array(["a", "b"], pa.string_view()), "b"),
        (pa.array(["a", "b"]).dictionary_encode(), "b"),
        (pa.nulls(2), None),
    ],
)
def test_plain_values_are_those_of_python(column: pa.Array, value: Any) -> None:
    bound = {"a": pa.chunked_array([column.slice(0, 1), column.slice(1)])}
    assert binding.row(bound, 1) == {"a": value}


@pytest.mark.parametrize(
    "value",
    [
        pa.array([None], pa.int32()),
        pa.array([None], pa.string()),
        pa.array([date(2020, 1, 1)]),
        pa.array([b"x"]),
        pa.array([[1, None]]),
        pa.array([None], pa.timestamp("us", "UTC")),
    ],
)
def test_other_values_and_null_keep_their_type(value: pa.Array) -> None:
    bound = binding.row({"a": pa.chunked_array([value])}, 0)["a"]
    assert isinstance(bound, ArrowValue)
    assert bound.array.equals(value)


def test_parameters_are_described_in_the_order_of_numbers() -> None:
    found = placeholders.find("SELECT $10, $b, $2, $a")
    described = binding.schema(found, {"2": pa.int64(), "b": pa.string()})
    assert described == pa.schema(
        [("$2", pa.int64()), ("$10", pa.null()), ("$a", pa.null()), ("$b", pa.string())]
    )
