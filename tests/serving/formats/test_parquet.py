"""Parquet as it is streamed: files that readers accept, in groups of bounded size."""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_serving.formats import parquet
from caraway_serving.formats.parquet import Parquet


def encoded(schema: pa.Schema, *batches: pa.RecordBatch) -> bytes:
    encoder = Parquet()
    parts = [encoder.encode_start(schema), *map(encoder.encode, batches), encoder.end(0)]
    return b"".join(parts)


def read_back(schema: pa.Schema, *batches: pa.RecordBatch) -> pa.Table:
    return pq.ParquetFile(io.BytesIO(encoded(schema, *batches))).read()


WRITABLE: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None]),
    (pa.bool_(), [True, False]),
    (pa.uint64(), [0, 2**64 - 1]),
    (pa.int8(), [-128, 127]),
    (pa.float16(), [1.5]),
    (pa.float64(), [float("inf"), -0.0]),
    (pa.decimal128(38, 10), [Decimal("1.5")]),
    (pa.decimal256(70, 2), [Decimal("1.25")]),
    (pa.date32(), [0]),
    (pa.time32("ms"), [0]),
    (pa.time64("ns"), [0]),
    (pa.timestamp("s"), [0]),
    (pa.timestamp("ns", "UTC"), [1]),
    (pa.timestamp("us", "+05:30"), [1]),
    (pa.duration("ns"), [5]),
    (pa.string(), ["", "é\x00", "x" * 100]),
    (pa.large_string(), ["a"]),
    (pa.string_view(), ["a", "b" * 20]),
    (pa.binary(), [b"", b"\xff"]),
    (pa.binary(4), [b"abcd"]),
    (pa.binary_view(), [b"\xff" * 20]),
    (pa.list_(pa.string_view()), [["a", None], []]),
    (pa.list_(pa.int8(), 2), [[1, 2]]),
    (pa.large_list(pa.int8()), [[1]]),
    (pa.list_view(pa.int8()), [[1], []]),
    (pa.struct([("a", pa.binary_view()), ("b", pa.null())]), [{"a": b"x", "b": None}]),
    (pa.map_(pa.string_view(), pa.list_(pa.string_view())), [[("k", ["v"])]]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    (pa.dictionary(pa.int8(), pa.int64()), [1, 2]),
]
REFUSED = [
    pa.decimal128(5, -2),
    pa.binary(0),
    pa.month_day_nano_interval(),
    pa.struct([]),
    pa.list_(pa.struct([])),
    pa.list_(pa.month_day_nano_interval()),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.dense_union([pa.field("a", pa.int8())]),
    pa.sparse_union([pa.field("a", pa.int8())]),
]


@pytest.mark.parametrize(("type_", "values"), WRITABLE, ids=[str(each) for each, _ in WRITABLE])
def test_values_of_every_type_are_read_back(type_: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([pa.field("x", type_), pa.field("y", pa.int64(), False)])
    column = pa.array([*values, None], type_)
    batch = pa.RecordBatch.from_arrays([column, pa.array(range(len(column)))], schema=schema)
    found = read_back(schema, batch, batch.slice(1), batch.slice(0, 0))
    assert found.column("x").to_pylist() == [*column.to_pylist(), *column.to_pylist()[1:]]
    assert not found.schema.field("y").nullable


@pytest.mark.parametrize("type_", REFUSED, ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_what_cannot_be_written_is_refused_before_the_first_byte(
    type_: pa.DataType, inside: bool
) -> None:
    schema = pa.schema([("x", pa.struct([("a", type_)]) if inside else type_)])
    with pytest.raises(InvalidQueryError, match=r"cannot be written as Parquet: .*another format"):
        Parquet().encode_start(schema)


def test_rows_without_columns_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="rows without columns"):
        Parquet().encode_start(pa.schema([]))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.integers(1, 7),
    st.integers(1, 200),
)
def test_groups_end_at_rows_or_bytes_whichever_come_first(
    heights: list[int], most_rows: int, most_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", most_rows)
        patch.setattr(parquet, "_GROUP_BYTES", most_bytes)
        schema = pa.schema([("x", pa.int64())])
        numbers = iter(range(1000))
        batches = [
            pa.record_batch({"x": [next(numbers) for _ in range(height)]}, schema=schema)
            for height in heights
        ]
        file = pq.ParquetFile(io.BytesIO(encoded(schema, *batches)))
    assert file.read().column("x").to_pylist() == list(range(sum(heights)))
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    # A group ends at the first batch that reaches a limit, so it is less than two of its limits.
    assert all(0 < rows < 2 * most_rows for rows in groups)
    assert all((rows - min(rows, most_rows, 9)) * 8 < most_bytes for rows in groups)


def test_bytes_come_as_soon_as_a_group_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 10)
    schema = pa.schema([("x", pa.int64())])
    encoder = Parquet()
    assert encoder.encode_start(schema) == b"PAR1"
    batch = pa.record_batch({"x": list(range(6))}, schema=schema)
    assert encoder.encode(batch) == b""
    assert len(encoder.encode(batch)) > 0
    assert encoder.encode(batch) == b""
    assert encoder.end(0).endswith(b"PAR1")


def test_columns_may_share_a_name_and_batches_may_have_views() -> None:
    schema = pa.schema([("x", pa.string_view()), ("x", pa.int64())])
    arrays = [pa.array(["a"], pa.string_view()), pa.array([1])]
    found = read_back(schema, pa.RecordBatch.from_arrays(arrays, schema=schema))
    assert found.column(0).to_pylist() == ["a"]
    assert found.column(1).to_pylist() == [1]
    assert found.schema.field(0).type == pa.string()


def test_metadata_of_columns_is_kept() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"a": "b"})])
    found = read_back(schema, pa.record_batch({"x": [1]}, schema=schema))
    assert found.schema.field("x").metadata[b"a"] == b"b"
