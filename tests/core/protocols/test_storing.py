"""Descriptions of stored chunks come out as they went in, and only last attempts count."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.partitions.keys import BucketKey, ByExpression, PartitionBy
from caraway_core.protocols import storing
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, StoreOrder
from caraway_core.tables import ResultPlace

NUMBERS = st.integers(0, 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
CHUNKS = st.builds(
    StoredChunk,
    NUMBERS,
    NUMBERS,
    st.builds(
        ChunkInfo, NUMBERS, st.integers(0, 2**62), st.integers(0, 2**62), TEXTS, TEXTS,
        st.just(""), TEXTS,
    ),
)  # fmt: skip
ANSWER = pa.schema(
    [
        pa.field("a", pa.decimal128(10, 2), metadata={"k": "v"}),
        pa.field("b", pa.list_(pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))])), False),
        pa.field("a", pa.string_view()),
    ],
    metadata={b"\xff": b"\0"},
)


@given(st.lists(CHUNKS, max_size=6))
def test_descriptions_are_read_back(chunks: list[StoredChunk]) -> None:
    batch = storing.pack(chunks, storing.stored_schema(ANSWER))
    batch.validate(full=True)
    assert list(storing.unpack(batch)) == chunks


def test_the_schema_of_the_rows_is_carried_along() -> None:
    stored = storing.stored_schema(ANSWER)
    assert storing.answer_schema(pickle.loads(pickle.dumps(stored))).equals(ANSWER, True)
    empty = storing.stored_schema(pa.schema([]))
    assert storing.answer_schema(empty).equals(pa.schema([]))


def test_values_of_expressions_are_not_stored() -> None:
    one, other = ByExpression("year(at)"), ByExpression("lower(b)")
    cut = PartitionBy((one, BucketKey(4, "a"), other))
    kept = storing.kept_schema(
        pa.schema([("a", pa.int8()), ("1", pa.int8()), ("2", pa.int8())]), cut
    )
    assert kept.names == ["a"]
    assert storing.kept_schema(ANSWER, PartitionBy()).equals(ANSWER, True)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=12))
def test_only_the_last_attempt_of_a_task_counts(told: list[tuple[int, int, int]]) -> None:
    """A row count of 0 marks the start of an attempt."""
    chunks = [
        StoredChunk(task, attempt, ChunkInfo(index, index, index, f"{task} {attempt} {number}"))
        for number, (task, attempt, index) in enumerate(told)
    ]
    found = storing.in_order(chunks)
    expected = []
    for task in range(3):
        attempts = [each.attempt for each in chunks if each.task == task]
        last = [
            each.chunk
            for each in chunks
            if each.task == task and each.attempt == max(attempts) and each.chunk.row_count
        ]
        expected += sorted(last, key=lambda chunk: chunk.index)
    assert list(found) == expected


def test_an_attempt_that_began_forgets_the_one_before() -> None:
    chunk = StoredChunk(0, 0, ChunkInfo(0, 5, 5, "x"))
    assert storing.in_order([chunk]) == [chunk.chunk]
    assert storing.in_order([chunk, storing.begun(0, 1)]) == []
    assert storing.in_order([storing.begun(0, 1), chunk, storing.begun(1, 3)]) == []


@pytest.mark.parametrize(
    ("grown", "stored", "expected"),
    [(None, 10**12, 100), (0, 10**12, 100), (1000, 0, 100), (1000, 799, 100), (1000, 808, 101),
     (1000, 4000, 500), (1000, 10**12, 1000), (50, 10**12, 100)],
)  # fmt: skip
def test_chunks_grow_with_what_is_stored(grown: int | None, stored: int, expected: int) -> None:
    order = StoreOrder(ResultPlace("file", "/x"), "k", chunk_bytes=100, grown_bytes=grown)
    assert order.enough_bytes(stored) == expected
