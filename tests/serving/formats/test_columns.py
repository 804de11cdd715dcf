"""Columns that a format has no words for."""

import datetime as dt
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_serving.formats import columns
from tests.serving.formats.encoding import cells, encode, one, values

NUMBERED = pa.map_(pa.int64(), pa.string())
LINE_BREAKS = "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize("break_", LINE_BREAKS, ids=[f"U+{ord(each):04X}" for each in LINE_BREAKS])
def test_a_line_break_inside_of_a_nested_value_is_no_new_row(break_: str) -> None:
    held = [[f"a{break_}b"], [break_], None, []]
    assert [json.loads(cell) if cell else None for cell in cells(encode("csv", one(held)))] == held


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(
        st.none() | st.lists(st.none() | st.text(max_size=8), max_size=3), min_size=1, max_size=5
    )
)
def test_any_list_of_texts_reads_back_from_csv(held: list[Any]) -> None:
    rows = one(held, pa.list_(pa.string()))
    found = [json.loads(cell) if cell else None for cell in cells(encode("csv", rows))]
    assert found == held
    assert values(encode("json", rows)) == held


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (NUMBERED, [(1, "a"), (-2, None)], {"1": "a", "-2": None}),
        (pa.map_(pa.date32(), pa.int8()), [(dt.date(2024, 2, 29), 1)], {"2024-02-29": 1}),
        (pa.map_(pa.bool_(), pa.int8()), [(True, 1)], {"true": 1}),
        (pa.map_(pa.int8(), NUMBERED), [(1, [(2, "b")])], {"1": {"2": "b"}}),
        (pa.map_(pa.string(), NUMBERED), [("x", [(2, "b")])], {"x": {"2": "b"}}),
        (pa.map_(pa.large_string(), pa.int8()), [("x", 1)], {"x": 1}),
        (pa.map_(pa.string_view(), pa.int8()), [("x", 1)], {"x": 1}),
        (pa.list_(NUMBERED), [[(1, "a")], None, []], [{"1": "a"}, None, {}]),
        (pa.large_list(NUMBERED), [[(1, "a")], None], [{"1": "a"}, None]),
        (pa.list_(NUMBERED, 2), [[(1, "a")], None], [{"1": "a"}, None]),
        (pa.struct([("m", NUMBERED)]), {"m": [(1, "a")]}, {"m": {"1": "a"}}),
        (pa.struct([("n", pa.int8()), ("l", pa.list_(NUMBERED))]),
         {"n": 1, "l": [[(7, "")]]}, {"n": 1, "l": [{"7": ""}]}),
    ],
)  # fmt: skip
def test_a_map_is_an_object_wherever_it_stands(
    type_: pa.DataType, value: Any, expected: Any
) -> None:
    rows = one([value, None], type_)
    assert values(encode("json", rows)) == [expected, None]
    assert [json.loads(line)["c"] for line in encode("ndjson", rows).splitlines()] == [
        expected,
        None,
    ]
    first, second = cells(encode("csv", rows))
    assert (json.loads(first), second) == (expected, "")


def test_what_needs_no_change_is_not_copied() -> None:
    rows = pa.record_batch({"a": [1], "m": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int8()))})
    assert columns.for_json(rows) is rows
    flat = rows.select(["a"])
    assert columns.for_csv(flat) is flat


def test_rows_of_a_slice_are_those_of_the_slice() -> None:
    held = [[(1, "a")], [(2, "b")], None, [(4, "d")]]
    rows = one(held, NUMBERED).slice(1, 2)
    assert values(encode("json", rows)) == [{"2": "b"}, None]
    assert cells(encode("csv", rows)) == ['{"2":"b"}', ""]


def test_columns_of_one_name_stay_apart() -> None:
    lists = pa.array([[1]])
    rows = pa.RecordBatch.from_arrays([lists, pa.array([2]), lists], names=["a", "a", "b"])
    assert columns.for_csv(rows).schema.names == ["a", "a", "b"]
    assert encode("csv", rows) == b"a,a,b\n[1],2,[1]\n"


VIEW, TEXT = pa.string_view(), pa.string()


@pytest.mark.parametrize(
    ("type_", "expected", "value"),
    [
        (VIEW, TEXT, "é"),
        (pa.binary_view(), pa.binary(), b"\x00"),
        (pa.list_(VIEW), pa.list_(TEXT), ["a", None]),
        (pa.large_list(VIEW), pa.large_list(TEXT), ["a", None]),
        (pa.list_(VIEW, 2), pa.list_(TEXT, 2), ["a", None]),
        (pa.list_(pa.list_(pa.binary_view())), pa.list_(pa.list_(pa.binary())), [[b"a"], None]),
        (pa.struct([("x", VIEW), ("y", pa.int8())]), pa.struct([("x", TEXT), ("y", pa.int8())]),
         {"x": "a", "y": 1}),
        (pa.map_(VIEW, VIEW), pa.map_(TEXT, TEXT), [("a", None)]),
        (pa.dictionary(pa.int32(), VIEW), pa.dictionary(pa.int32(), TEXT), "a"),
        (pa.large_string(), pa.large_string(), "a"),
        (pa.decimal128(5, 2), pa.decimal128(5, 2), None),
    ],
)  # fmt: skip
def test_readers_that_know_no_views_get_none(
    type_: pa.DataType, expected: pa.DataType, value: Any
) -> None:
    if pa.types.is_dictionary(type_):
        rows = pa.record_batch({"c": pa.array([value, None], VIEW).dictionary_encode()})
    else:
        rows = one([value, None], type_)
    assert columns.without_views(rows.schema).field("c").type == expected
    stream = pa.ipc.open_stream(encode("arrow", rows)).read_all()
    assert stream.schema.field("c").type == expected
    assert stream.to_pylist() == rows.to_pylist()
    file = pq.read_table(io.BytesIO(encode("parquet", rows)))
    assert file.to_pylist() == rows.to_pylist()


def test_what_else_a_schema_says_stays() -> None:
    field = pa.field("a", VIEW, nullable=False, metadata={"k": "v"})
    made = columns.without_views(pa.schema([field], {"of": "table"}))
    assert made.metadata == {b"of": b"table"}
    assert not made.field("a").nullable
    assert made.field("a").metadata == {b"k": b"v"}
    inner = pa.list_(pa.field("element", VIEW, nullable=False))
    item = columns.without_views(pa.schema([("l", inner)])).field("l").type.value_field
    assert (item.name, item.nullable, item.type) == ("element", False, TEXT)
