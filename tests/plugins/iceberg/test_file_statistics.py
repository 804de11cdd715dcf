"""Footers of real Parquet files become statistics by field id."""

import io
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_plugins.iceberg import column_types
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.file_statistics import FileStatistics, FooterReader


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return pq.read_metadata(io.BytesIO(out.getvalue()))


def read(table: pa.Table, wanted: pa.Schema | None = None, **options: Any) -> FileStatistics:
    schema = column_types.schema(wanted or table.schema)
    return FooterReader(schema).read(footer(table, **options))


def test_bounds_and_counts_are_those_of_all_row_groups() -> None:
    table = pa.table({
        "n": pa.array([4, None, -7, 2], pa.int64()),
        "price": pa.array([Decimal("3.00"), Decimal("-5.25"), Decimal("1.00"), None]),
        "name": ["b", "a", "d", "c"],
    })  # fmt: skip
    found = read(table.cast(table.schema), row_group_size=2)
    assert found.row_count == 4
    assert found.value_counts == {1: 4, 2: 4, 3: 4}
    assert found.null_counts == {1: 1, 2: 1, 3: 0}
    assert (found.lower[1], found.upper[1]) == (struct.pack("<q", -7), struct.pack("<q", 4))
    assert int.from_bytes(found.lower[2], "big", signed=True) == -525
    assert int.from_bytes(found.upper[2], "big", signed=True) == 300
    assert (found.lower[3], found.upper[3]) == (b"a", b"d")
    assert len(found.split_offsets) == 2 and found.split_offsets[0] == 4
    assert all(size > 0 for size in found.column_sizes.values())


def test_only_structs_have_bounds_for_inner_fields() -> None:
    table = pa.table({
        "s": [{"x": 1, "y": "a"}, {"x": 3, "y": "b"}],
        "l": [[1, 2], [9]],
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "after": [5, 6],
    })  # fmt: skip
    schema = column_types.schema(table.schema)
    found = FooterReader(schema).read(footer(table))
    x, y = schema.field("s").inner
    assert set(found.lower) == {x.id, y.id, schema.field("after").id}
    assert found.upper[x.id] == struct.pack("<q", 3)
    assert found.lower[schema.field("after").id] == struct.pack("<q", 5)


def test_columns_without_statistics_have_no_bounds() -> None:
    found = read(pa.table({"a": [1, 2], "b": [1.0, float("nan")]}), write_statistics=["b"])
    assert 1 not in found.lower and 1 not in found.null_counts
    assert found.value_counts == {1: 2, 2: 2}
    assert read(pa.table({"a": pa.array([None], pa.int64())})).lower == {}
    assert read(pa.table({"a": pa.array([], pa.int64())})).row_count == 0


def test_files_may_be_narrower_than_the_table() -> None:
    table = pa.table({"a": pa.array([1], pa.int32()), "f": pa.array([1.5], pa.float32())})
    wanted = pa.schema([("a", pa.int64()), ("missing", pa.string()), ("f", pa.float64())])
    found = read(table, wanted)
    assert found.lower == {1: struct.pack("<q", 1), 3: struct.pack("<d", 1.5)}


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (pa.array([1], pa.int64()), pa.float64()),
        (pa.array([1], pa.int64()), pa.int32()),
        (pa.array([1], pa.uint32()), pa.int64()),
        (pa.array([Decimal("1.0")], pa.decimal128(5, 1)), pa.decimal128(9, 2)),
        (pa.array([[1]]), pa.list_(pa.string())),
        (pa.array([{"x": 1}]), pa.struct([("x", pa.string())])),
        (pa.array([1]), pa.struct([("x", pa.string())])),
        (pa.array([[1]]), pa.int64()),
    ],
)
def test_files_that_iceberg_would_read_otherwise_are_refused(
    own: pa.Array, wanted: pa.DataType
) -> None:
    with pytest.raises(NoIcebergTypeError, match=r"^column 'a(\.x)?' is .* in the table$"):
        read(pa.table({"a": own}), pa.schema([("a", wanted)]))


@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_moments_in_other_units_than_microseconds_are_refused(unit: str) -> None:
    moments = pa.array([1], pa.timestamp(unit))
    for column in (moments, pa.array([[1]], pa.list_(pa.timestamp(unit)))):
        with pytest.raises(NoIcebergTypeError, match="which some engines read as microseconds"):
            read(pa.table({"a": column}))
    # Readers know those of 96 bits, which Spark writes.
    found = read(pa.table({"a": moments}), use_deprecated_int96_timestamps=True)
    assert found.value_counts == {1: 1}


def test_files_with_other_field_ids_are_refused() -> None:
    column = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "4"})
    table = pa.table([[1]], schema=pa.schema([column]))
    schema = column_types.schema(table.schema, {("a",): 4})
    assert FooterReader(schema).read(footer(table)).value_counts == {4: 1}
    with pytest.raises(NoIcebergTypeError, match="column 'a' has different field ids"):
        FooterReader(column_types.schema(table.schema)).read(footer(table))


def test_columns_are_found_by_their_names_in_files() -> None:
    schema = column_types.schema(pa.schema([("full_name", pa.string())]))
    reader = FooterReader(schema, {"full_name": "Full Name"})
    assert reader.read(footer(pa.table({"Full Name": ["x"]}))).lower == {1: b"x"}
