from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.protocols.storing import StoreOrder
from caraway_core.tables import ResultPlace
from caraway_executor.storage.chunking import Chunker, Gathering

ROW = 8
ORDER = StoreOrder(ResultPlace("file", "/r"), "k", first_rows=10, chunk_bytes=30 * ROW)


def numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(count), pa.int64())})


def cut(chunker: Chunker, batches: Sequence[pa.RecordBatch]) -> list[list[int]]:
    """Return the rows of each batch of each chunk."""
    chunks = [chunk for batch in batches for chunk in chunker.add(batch)] + list(chunker.rest())
    return [[batch.num_rows for batch in chunk] for chunk in chunks]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([0, 0], []),
        ([4], [[4]]),
        ([4, 4, 4], [[4, 4, 4]]),
        ([10], [[10]]),
        ([4, 0, 6, 4], [[4, 6], [4]]),
        ([10, 10, 10, 10, 10], [[10], [10, 10, 10], [10]]),
        ([50, 40, 2], [[50], [40], [2]]),
    ],
)
def test_the_first_chunk_is_closed_by_rows_and_the_others_by_bytes(
    given: list[int], expected: list[list[int]]
) -> None:
    assert cut(Chunker(ORDER), [numbers(count) for count in given]) == expected


def test_wide_rows_do_not_close_a_later_chunk_before_it_has_enough_of_them() -> None:
    wide = pa.record_batch({"w": ["x" * 300] * 4})
    assert cut(Chunker(ORDER), [numbers(10), wide, wide, wide]) == [[10], [4, 4, 4]]


def test_a_batch_far_larger_than_a_chunk_is_sliced_and_loses_no_row() -> None:
    batch = numbers(100)
    chunks = list(Chunker(ORDER).add(batch))
    assert [[piece.num_rows for piece in chunk] for chunk in chunks] == [[30], [30], [30]]
    chunker = Chunker(ORDER)
    pieces = [piece for chunk in [*chunker.add(batch), *chunker.rest()] for piece in chunk]
    assert pa.Table.from_batches(pieces) == pa.Table.from_batches([batch])


def test_rows_so_wide_that_a_chunk_of_them_does_not_fit_close_it_early() -> None:
    huge = pa.record_batch({"w": ["x" * 1000] * 6})
    assert cut(Chunker(ORDER, most_bytes=2500), [huge]) == [[2, 2], [2]]


def test_no_more_is_gathered_than_a_chunk_holds_and_the_first_rows_are_given_soon() -> None:
    gathering = Gathering(ORDER)

    given = [len(gathering.add(numbers(count))) for count in (5, 0, 5, 10, 10, 10, 50, 4)]

    assert given == [0, 0, 2, 0, 0, 3, 1, 0]
    assert [batch.num_rows for batch in gathering.rest()] == [4]
    assert gathering.rest() == []


def test_chunks_grow_with_what_is_stored_before_them() -> None:
    grown = StoreOrder(ORDER.place, "k", first_rows=10, chunk_bytes=800, grown_bytes=8_000)
    chunker = Chunker(grown)
    sizes = [
        sum(piece.nbytes for piece in chunk)
        for _ in range(20_000)
        for chunk in chunker.add(numbers(10))
    ]
    assert sizes[0] == 80
    assert sizes[1:8] == [800] * 7
    assert sizes[1:] == sorted(sizes[1:]) and sizes[-1] == 8_000
    for number, size in enumerate(sizes[1:], 1):
        assert size <= max(800, sum(sizes[:number]) // 8 + 80)


def test_what_was_gathered_for_a_grown_chunk_is_one() -> None:
    grown = StoreOrder(ORDER.place, "k", first_rows=10, chunk_bytes=800, grown_bytes=8_000)
    chunker = Chunker(grown)
    for _ in range(20_000):
        list(chunker.add(numbers(10)))
    list(chunker.rest())
    (chunk,) = chunker.add(numbers(1_500))
    assert [piece.num_rows for piece in chunk] == [1_500]
