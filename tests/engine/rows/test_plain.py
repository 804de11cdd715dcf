import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_engine.rows import plain


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.string_view(), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.large_string(), pa.large_string()),
        (pa.list_(pa.string_view()), pa.list_(pa.string())),
        (pa.list_(pa.binary_view(), 2), pa.list_(pa.binary())),
        (pa.list_(pa.list_(pa.float32(), 4)), pa.list_(pa.list_(pa.float32()))),
        (pa.map_(pa.string_view(), pa.int8()), pa.map_(pa.string(), pa.int8())),
        (
            pa.struct([("x", pa.list_(pa.string_view())), ("y", pa.int8())]),
            pa.struct([("x", pa.list_(pa.string())), ("y", pa.int8())]),
        ),
    ],
)
def test_views_become_what_they_view(type_: pa.DataType, expected: pa.DataType) -> None:
    assert plain.plain_type(type_) == expected
    batch = pa.record_batch([pa.nulls(2, type_)], ["a"])
    schema = pa.schema([("c0", expected)])
    assert plain.plain_table([batch, batch], schema).to_pylist() == [{"c0": None}] * 4


def test_fixed_sizes_come_back_with_the_schema_of_the_statement() -> None:
    sized = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    schema = pa.schema([("e", sized.type)])
    crossed = plain.plain_table([pa.record_batch([sized], ["e"])], plain.plain_schema(schema))
    assert crossed["e"].type == pa.list_(pa.float32())
    (batch,) = crossed.to_batches()
    assert plain.restored(batch, schema).column(0).equals(sized)


def test_slice_does_not_carry_the_text_that_it_was_cut_from() -> None:
    texts = pa.record_batch({"w": [f"a text of some length {n}" for n in range(60_000)]})
    table = plain.plain_table([texts.slice(50_000, 10)], texts.schema)
    assert table["w"].to_pylist() == [f"a text of some length {n}" for n in range(50_000, 50_010)]
    assert table.get_total_buffer_size() < 10_000


def test_null_where_the_plan_says_there_is_none_is_refused() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    batch = pa.record_batch({"a": [1, None]})
    with pytest.raises(ExecutionError, match="column 'a' of a fragment contains NULL"):
        plain.plain_table([batch], schema)


@pytest.mark.parametrize(
    ("found", "expected", "is_same"),
    [
        (pa.string_view(), pa.string(), True),
        (pa.string(), pa.large_string(), False),
        (pa.int64(), pa.int32(), False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), False),
        (pa.list_(pa.field("item", pa.int8(), nullable=False)), pa.list_(pa.int8()), True),
        (pa.struct([("x", pa.int8())]), pa.struct([("y", pa.int8())]), False),
        (pa.list_(pa.float32(), 4), pa.list_(pa.float32()), True),
        (pa.list_(pa.float32(), 4), pa.list_(pa.float64()), False),
    ],
)
def test_only_plain_types_are_the_same_as_another_type(
    found: pa.DataType, expected: pa.DataType, is_same: bool
) -> None:
    one, other = pa.schema([("a", found)]), pa.schema([("b", expected)])
    if is_same:
        plain.check_same(one, other)
    else:
        with pytest.raises(ExecutionError, match="bug in the planner"):
            plain.check_same(one, other)
