"""Rows are written as Parquet files with types that Iceberg has."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.loading import registry
from caraway_core.tables import ResultPlace
from caraway_plugins.iceberg import column_types, written_types
from caraway_plugins.stores import parquet
from caraway_plugins.stores.parquet import ParquetWriter

ROWS = pa.table({
    "u": pa.array([2**64 - 1, None], pa.uint64()),
    "t": pa.array([datetime(2024, 1, 1), None], pa.timestamp("ns")),
    "s": pa.array(["a", None], pa.string_view()),
    "l": pa.array([[1.5], []], pa.list_(pa.float32())),
})  # fmt: skip

NESTED = pa.struct([("x", pa.list_(pa.int16())), ("m", pa.map_(pa.string(), pa.uint32()))])


def opened(folder: Path, *, is_table: bool = False) -> ParquetWriter:
    place = parquet.place(ResultPlace("file", str(folder)), "t/state", is_table=is_table)
    store: ParquetWriter = registry.CHUNK_WRITERS.load(place.kind).at(place)
    return store


async def test_files_have_the_rows_in_types_of_iceberg(tmp_path: Path) -> None:
    store = opened(tmp_path)
    one = await store.write_chunk("data", 0, ROWS.schema, ROWS.to_batches())
    two = await store.write_chunk("data", 0, ROWS.schema, ROWS.to_batches())
    assert parquet.file_name("data", one) != parquet.file_name("data", two)
    path = tmp_path / "t" / "state" / parquet.file_name("data", one)
    file = pq.read_table(path)
    assert (one.row_count, one.size_bytes) == (2, path.stat().st_size)
    assert file.schema.types == [
        pa.decimal128(20, 0), pa.timestamp("us"), pa.string(), pa.list_(pa.float32()),
    ]  # fmt: skip
    assert file.to_pylist()[0]["u"] == 2**64 - 1


async def test_decimals_are_integers_where_they_fit(tmp_path: Path) -> None:
    types = [pa.decimal128(9, 2), pa.decimal128(18, 4), pa.decimal128(19, 2)]
    rows = pa.table({str(each): pa.array([Decimal("-5.25"), None], each) for each in types})
    chunk = await opened(tmp_path).write_chunk("data", 0, rows.schema, rows.to_batches())
    file = pq.ParquetFile(tmp_path / "t" / "state" / parquet.file_name("data", chunk))
    columns = [file.metadata.row_group(0).column(index) for index in range(len(types))]
    assert [each.physical_type for each in columns] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert file.read().to_pylist() == rows.to_pylist()


async def test_columns_whose_values_repeat_have_a_dictionary(tmp_path: Path) -> None:
    rows = pa.table({
        "own": pa.array(range(1_000), pa.int64()),
        "few.of": pa.array([f"text {n % 5}" for n in range(1_000)]),
        "none": pa.nulls(1_000, pa.string()),
        "flag": pa.array([n % 2 == 0 for n in range(1_000)]),
    })  # fmt: skip
    chunk = await opened(tmp_path).write_chunk("data", 0, rows.schema, rows.to_batches())
    file = pq.ParquetFile(tmp_path / "t" / "state" / parquet.file_name("data", chunk))
    group = file.metadata.row_group(0)
    dictionaries = {
        group.column(at).path_in_schema: group.column(at).has_dictionary_page for at in range(3)
    }
    assert dictionaries == {"own": False, "few.of": True, "none": True}
    assert file.read().equals(rows)


async def test_columns_that_become_little_smaller_are_not_compressed(tmp_path: Path) -> None:
    random = Random(5)
    rows = pa.table({
        "numbers": pa.array([random.getrandbits(48) for _ in range(5_000)], pa.int64()),
        "few": pa.array([random.getrandbits(3) for _ in range(5_000)], pa.int64()),
        "a.text": pa.array([f"the text of a long comment, number {n}" for n in range(5_000)]),
    })  # fmt: skip
    chunk = await opened(tmp_path).write_chunk("data", 0, rows.schema, rows.to_batches())
    file = pq.ParquetFile(tmp_path / "t" / "state" / parquet.file_name("data", chunk))
    group = file.metadata.row_group(0)
    codecs = {group.column(at).path_in_schema: group.column(at).compression for at in range(3)}
    assert codecs == {"numbers": "UNCOMPRESSED", "few": "UNCOMPRESSED", "a.text": "SNAPPY"}
    assert file.read().equals(rows)


async def test_files_of_tables_have_the_ids_of_their_fields(tmp_path: Path) -> None:
    nested = ROWS.append_column("n", pa.array([{"x": [1], "m": [("k", 2)]}, None], NESTED))
    chunk = await opened(tmp_path, is_table=True).write_chunk(
        "data", 0, nested.schema, nested.to_batches()
    )
    file = pq.read_table(tmp_path / "t" / "state" / parquet.file_name("data", chunk))
    wanted = column_types.schema(written_types.columns(nested.schema))
    assert column_types.schema(file.schema, column_types.field_ids(file.schema)) == wanted
    assert len(column_types.field_ids(file.schema)) == wanted.last_id == 11
    assert file.column("n").to_pylist() == nested.column("n").to_pylist()
