"""CSV that other readers understand: Python's csv module and pyarrow read the same values back."""

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from caraway_serving.formats.delimited import Csv
from tests.serving.formats.encoding import encode, one

# Text that needs quotes, escapes or care: line ends, separators, quotes, formulas, NUL-free.
AWKWARD = st.text(st.sampled_from('a,"\n\r;\t =+-@\u2028é漢'), max_size=12)


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


@given(st.lists(st.tuples(AWKWARD, AWKWARD), min_size=1, max_size=6))
@settings(max_examples=80, deadline=None)
def test_text_is_read_back_by_python(rows: list[tuple[str, str]]) -> None:
    batch = pa.record_batch({"a": [each for each, _ in rows], "b": [each for _, each in rows]})
    header, *found = read(encode("csv", batch))
    assert header == ["a", "b"]
    assert [tuple(each) for each in found] == rows


@given(AWKWARD.filter(bool), AWKWARD.filter(bool))
@settings(max_examples=40, deadline=None)
def test_column_names_are_read_back(first: str, second: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=[first, second])
    assert read(encode("csv", batch))[0] == [first, second]


def test_values_of_many_types_are_read_back_by_arrow() -> None:
    batch = pa.record_batch(
        {
            "n": pa.array([1, None, -(2**63)], pa.int64()),
            "f": pa.array([0.1, 1e300, None], pa.float64()),
            "d": pa.array([0, 1, None], pa.date32()),
            "s": pa.array(["", "x", "NULL"]),
        }
    )
    options = arrow_csv.ConvertOptions(
        column_types=batch.schema, strings_can_be_null=False, null_values=[""]
    )
    found = arrow_csv.read_csv(io.BytesIO(encode("csv", batch)), convert_options=options)
    assert found == pa.Table.from_batches([batch])


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        ([1, None, 3], "[1,null,3]"),
        ({"k": 'a"b', "n": None}, '{"k":"a\\"b","n":null}'),
        ([{"x": [1]}], '[{"x":[1]}]'),
        (True, "true"),
    ],
)
def test_nested_values_are_json_in_one_cell(value: Any, cell: str) -> None:
    # The row number keeps the line of an empty cell from being an empty line.
    batch = pa.record_batch({"i": [7], "v": pa.array([value])})
    assert read(encode("csv", batch))[1] == ["7", cell]


def test_batches_follow_each_other_without_another_header() -> None:
    encoder = Csv()
    first, second = one([1]), one([2])
    data = encoder.encode_start(first.schema) + encoder.encode(first) + encoder.encode(second)
    assert len(read(data + encoder.end(0))) == 3


def test_rows_without_columns_are_nothing() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert encode("csv", rows) == b""
