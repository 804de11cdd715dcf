"""The table for people, with any text in its cells."""

import unicodedata
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.formats.encoding import encode, one


def lines(*batches: pa.RecordBatch) -> list[str]:
    return encode("text", *batches).decode().split("\n")[:-1]


def cell(value: Any, type_: pa.DataType | None = None) -> str:
    return lines(one([value], type_))[3][2:-2].rstrip()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("a\r\nb", "a\\r\\nb"),
        ("\t", "\\t"),
        ("\x00\x7f\x1b[31m", "\\x00\\x7f\\x1b[31m"),
        ("back\\slash", "back\\slash"),
        ("back\\slash\n", "back\\\\slash\\n"),
        ('"quoted", and more', '"quoted", and more'),
        ("| + - |", "| + - |"),
        ("", ""),
        (None, ""),
        ([1, None], "[1,null]"),
        ({"x": "a\nb"}, '{"x":"a\\nb"}'),
        (float("nan"), "NaN"),
        (-0.0, "-0.0"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
        (b"\x00\xff", "00ff"),
        (True, "true"),
    ],
)
def test_a_cell_is_on_one_line(value: Any, shown: str) -> None:
    assert cell(value) == shown


def test_a_cell_may_be_longer_than_the_reader_of_csv_takes() -> None:
    long = "x" * 300_000
    assert cell(long) == long


def test_the_name_of_a_column_is_on_one_line_as_well() -> None:
    rows = pa.record_batch({"a\nb": [1], 'q"|': [2]})
    assert lines(rows) == [
        "+------+-----+",
        '| a\\nb | q"| |',
        "+------+-----+",
        "| 1    | 2   |",
        "+------+-----+",
    ]


@pytest.mark.parametrize("text", ["漢字", "e\u0301", "日本語 text", "ascii"])
def test_borders_stand_below_each_other_in_a_terminal(text: str) -> None:
    assert len({columns_of(line) for line in lines(one([text, "x", None]))}) == 1


def columns_of(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def test_rows_without_columns_are_counted() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert lines(rows)[3:-1] == ["|  |", "|  |"]


def test_a_later_value_that_is_wider_is_whole() -> None:
    found = lines(one([1] * 10_000), one(["2" * 40]).cast(pa.schema([("c", pa.string())])))
    assert found[-2] == f"| {'2' * 40} |"
    assert found[0] == found[-1] == "+---+"


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.none() | st.text(max_size=6), min_size=2, max_size=2), max_size=6))
def test_there_is_a_line_for_each_row(table: list[list[str | None]]) -> None:
    rows = pa.record_batch({
        "a": pa.array([row[0] for row in table], pa.string()),
        "b": pa.array([row[1] for row in table], pa.string()),
    })  # fmt: skip
    found = lines(rows.slice(0, 2), rows.slice(2))
    assert len(found) == len(table) + 4
    assert {line[0] + line[-1] for line in found} <= {"++", "||"}
    assert found[0] == found[2] == found[-1]
