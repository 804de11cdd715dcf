"""Chunks in memory as batches of limited size, with the schema of their version."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_engine.rows import held, units
from caraway_engine.rows.held import Chunk, NoChunks

T = TableName("t")
SCHEMA = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})], metadata={"of": "t"})


def chunk(*heights: int) -> Chunk:
    numbers = iter(range(sum(heights)))
    return Chunk(
        tuple(
            pa.record_batch({"a": [next(numbers) for _ in range(height)]}, schema=SCHEMA)
            for height in heights
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 12))
def test_a_scan_reads_small_batches_of_the_same_memory(heights: list[int], most: int) -> None:
    whole = chunk(*heights).batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "SCANNED_ROWS", most)
        parts = list(held.scanned(whole))
    assert [number for part in parts for number in part.column(0).to_pylist()] == list(
        range(sum(heights))
    )
    assert all(0 < part.num_rows <= most for part in parts)
    places = {batch.column(0).buffers()[1].address for batch in whole if batch.num_rows}
    assert {part.column(0).buffers()[1].address for part in parts} == places


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 12))
def test_rows_are_cut_in_their_order_and_none_is_empty(heights: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "BATCH_ROWS", most)
        parts = list(held.cut(T, SCHEMA, chunk(*heights)))
    assert [number for part in parts for number in part.column(0).to_pylist()] == list(
        range(sum(heights))
    )
    assert all(0 < part.num_rows <= most for part in parts)
    assert all(part.schema.equals(SCHEMA, check_metadata=True) for part in parts)
    assert len(parts) == sum(-(-height // most) for height in heights)


def test_a_batch_that_fits_is_not_copied() -> None:
    made = chunk(5)
    (part,) = held.cut(T, SCHEMA, made)
    (whole,) = made.batches
    assert part.column(0).buffers()[1].address == whole.column(0).buffers()[1].address


@pytest.mark.parametrize(
    "stored",
    [
        pa.schema([("a", pa.int64())]),
        pa.schema([("renamed", pa.int64())]),
        pa.schema([pa.field("a", pa.int64(), False)]),
    ],
)
def test_names_and_metadata_are_those_of_the_version(stored: pa.Schema) -> None:
    rows = pa.record_batch([pa.array([1, 2])], schema=stored)
    (part,) = held.cut(T, SCHEMA, Chunk((rows,)))
    assert part.schema.equals(SCHEMA, check_metadata=True)
    assert part.column(0).to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "stored",
    [
        pa.schema([("a", pa.int32())]),
        pa.schema([("a", pa.string())]),
        pa.schema([("a", pa.int64()), ("b", pa.int64())]),
        pa.schema([]),
    ],
)
def test_rows_of_other_types_are_refused_with_a_remedy(stored: pa.Schema) -> None:
    columns = [pa.nulls(2, each.type) for each in stored]
    rows = pa.record_batch(columns, schema=stored) if columns else pa.record_batch(
        [pa.array([1, 2])], names=["a"]
    ).select([])  # fmt: skip
    with pytest.raises(ExecutionError, match=r"dataset 't': the types .*refresh the dataset"):
        list(held.cut(T, SCHEMA, Chunk((rows,))))


def test_units_name_their_chunk_and_their_place_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "BATCH_ROWS", 2)
    made = chunk(3, 0, 1)
    found = list(units.of_chunk(T, SCHEMA, made))
    assert [(each.place, each.batch.num_rows) for each in found] == [(0, 2), (1, 1), (2, 1)]
    assert all(each.key is made and each.holder is made and each.seen is None for each in found)
    again = list(units.of_chunk(T, SCHEMA, made))
    # An index is found again by the key and the place, and never by another chunk of equal rows.
    assert [(each.key, each.place) for each in again] == [(each.key, each.place) for each in found]
    assert chunk(3, 0, 1) != made


def test_an_engine_that_only_plans_has_no_chunks() -> None:
    none = NoChunks()
    assert none.count_bytes(T, 10**15) is None
    assert str(held.no_such_chunk(T)).startswith("a task has a share of dataset 't'")
