"""Times that Python has not are numbers, also inside of other values."""

import pyarrow as pa
import pytest

from caraway_engine.rows.times import as_numbers

NS, US = pa.timestamp("ns", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (NS, [1, 2, None]),
        (US, [2**60, -(2**60), None]),
        (pa.date32(), [10_000_000, 0]),
        (pa.time64("ns"), [1, 2]),
        (pa.time32("s"), [1, 2]),
        (pa.duration("s"), [2**60]),
    ],
)
def test_numbers_are_in_the_order_of_the_times(kind: pa.DataType, values: list[int]) -> None:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    column = pa.chunked_array([pa.array(values, width).cast(kind)])
    for each in (column, column.slice(1)):
        assert as_numbers(each).to_pylist() == values[len(values) - len(each) :]


def test_times_inside_of_other_values() -> None:
    inner = pa.array([1, None, 2**62], pa.int64()).cast(NS)
    struct = pa.StructArray.from_arrays([inner, pa.array(["a", "b", "c"])], ["at", "s"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), struct)
    values = [[{"at": 1, "s": "a"}], [{"at": None, "s": "b"}, {"at": 2**62, "s": "c"}]]
    assert as_numbers(pa.chunked_array([lists])).to_pylist() == values
    fixed = pa.FixedSizeListArray.from_arrays(inner, 3)
    assert as_numbers(pa.chunked_array([fixed])).to_pylist() == [[1, None, 2**62]]
    encoded = inner.dictionary_encode()
    assert as_numbers(pa.chunked_array([encoded])).to_pylist() == [1, None, 2**62]


def test_other_columns_stay_as_they_are() -> None:
    column = pa.chunked_array([pa.array([["a"], None])])
    assert as_numbers(column) is column
