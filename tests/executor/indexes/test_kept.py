"""Segments of indexes are built once, shared by versions, and go with their rows."""

import gc
import logging
import weakref
from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.errors import NotDistributableError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_engine.rows import units
from caraway_engine.rows.held import Chunk
from caraway_engine.rows.units import RowUnit
from caraway_executor.indexes.kept import FoundSegment, KeptSegments, WantedIndex
from caraway_executor.resources import freeing

T = TableName("t")
BATCH = pa.RecordBatch.from_pydict({"k": list(range(10))})


class Room:
    """Counts the bytes that are taken."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        if size_bytes > self.left:
            raise OutOfMemoryQueryError("no room")
        self.left -= size_bytes

        class Taken:
            pass

        taken = Taken()
        weakref.finalize(taken, self.give, size_bytes)
        return taken

    def give(self, size_bytes: int) -> None:
        self.left += size_bytes


class Built:
    """A segment over some batches."""

    nbytes = 100

    def __init__(self, parts: Sequence[RowUnit]) -> None:
        self.row_count = sum(unit.batch.num_rows for unit in parts)


def of_chunks(*chunks: Chunk) -> list[RowUnit]:
    # Each version cuts the chunks again.
    return [unit for chunk in chunks for unit in units.of_chunk(T, BATCH.schema, chunk)]


def test_a_segment_is_built_once_and_goes_with_its_chunk() -> None:
    room, built = Room(1000), []

    def build(parts: Sequence[RowUnit]) -> Built:
        built.append(len(parts))
        return Built(parts)

    kept = KeptSegments(room)
    chunk = Chunk((BATCH, BATCH))
    for _ in range(2):
        (a,), (b,) = (
            kept.segments_over(T, of_chunks(chunk), WantedIndex(name, build)) for name in "ab"
        )
        assert a.segment is not b.segment
        assert a.places == [0, 1]
    assert (built, room.left) == ([2, 2], 800)
    del chunk, a, b
    gc.collect()
    assert room.left == 1000
    kept.close()


def test_only_new_chunks_are_indexed_and_small_segments_are_joined() -> None:
    room, wanted = Room(10_000), WantedIndex("a", Built)
    kept = KeptSegments(room)
    chunks: list[Chunk] = []
    found: list[FoundSegment[Built]] = []
    for _ in range(5):
        chunks.append(Chunk((BATCH,)))
        found = kept.segments_over(T, of_chunks(*chunks), wanted)
    assert sorted(each.segment.row_count for each in found) == [10] * 5
    kept.close(wait=True)
    (joined,) = kept.segments_over(T, of_chunks(*chunks), wanted)
    assert (joined.segment.row_count, joined.places) == (50, [0, 1, 2, 3, 4])
    # An earlier version has other segments for a while.
    assert len(kept.segments_over(T, of_chunks(*chunks[:3]), wanted)) == 3
    # A version without one of the chunks, which are twice in it.
    again = kept.segments_over(T, of_chunks(*chunks[1:], *chunks[1:]), wanted)
    assert sum(each.segment.row_count for each in again) == 80
    assert sorted(place for each in again for place in each.places) == list(range(8))


def test_memory_of_rows_is_held_while_a_segment_needs_them() -> None:
    class Anything:
        pass

    kept, key, holder = KeptSegments(Room(1000)), Anything(), Anything()
    is_held = weakref.ref(holder)
    unit = RowUnit(BATCH, key, 0, holder)
    kept.segments_over(T, [unit], WantedIndex("a", Built))
    del unit, holder
    gc.collect()
    assert is_held() is not None
    del key
    gc.collect()
    assert is_held() is None
    kept.close()


def test_what_searches_wanted_is_prepared_for_a_new_version() -> None:
    built: list[int] = []

    def build(parts: Sequence[RowUnit]) -> Built:
        built.append(len(parts))
        return Built(parts)

    kept = KeptSegments(Room(1000))
    first, second = Chunk((BATCH,)), Chunk((BATCH, BATCH))
    kept.prepare(T, of_chunks(first))
    assert built == []
    kept.segments_over(T, of_chunks(first), WantedIndex("a", build))
    kept.prepare(T, of_chunks(first, second))
    kept.segments_over(T, of_chunks(first, second), WantedIndex("a", build))
    assert built == [1, 2]
    kept.close()


def test_what_a_new_version_lacks_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    kept, built = KeptSegments(Room(1000)), []

    def build(parts: Sequence[RowUnit]) -> Built:
        built.append(parts[0].batch.schema.names)
        return Built(parts)

    def fail(parts: Sequence[RowUnit]) -> Built:
        if parts[0].batch.schema != BATCH.schema:
            raise TypeError("a column of another type")
        return Built(parts)

    known, other = of_chunks(Chunk((BATCH,))), pa.RecordBatch.from_pydict({"n": ["a"]})
    wanted = (WantedIndex("k", build, ("k",)), WantedIndex("bad", fail), WantedIndex("n", build))
    for each in wanted:
        kept.segments_over(T, known, each)
    for _ in range(2):
        kept.prepare(T, list(units.of_chunk(T, other.schema, Chunk((other,)))))
    assert built == [["k"], ["k"], ["n"], ["n"]]
    assert [record.message for record in caplog.records] == ["an index was not built"]
    assert kept.segments_over(T, known, wanted[0])
    kept.close()


def test_searches_do_not_wait_for_a_warm_up() -> None:
    kept, chunk = KeptSegments(Room(1000)), Chunk((BATCH,))
    refused: list[str] = []

    def build(parts: Sequence[RowUnit]) -> Built:
        with pytest.raises(NotDistributableError, match="its index is being built"):
            kept.segments_over(T, of_chunks(chunk), wanted)
        refused.append("a")
        return Built(parts)

    wanted = WantedIndex("a", build)
    kept.warm_up(T, of_chunks(chunk), wanted)
    assert refused == ["a"]
    segments, missing = kept.known(T, of_chunks(chunk, Chunk((BATCH,))), lambda name: name == "a")
    assert (len(segments), missing) == (1, 10)
    assert len(kept.segments_over(T, of_chunks(chunk), wanted)) == 1
    kept.close()


def test_without_room_a_segment_is_built_for_each_search(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(50)
    kept = KeptSegments(room)
    chunk = Chunk((BATCH,))
    (unit,) = of_chunks(chunk)
    with caplog.at_level(logging.WARNING):
        (first,), (second,) = (
            kept.segments_over(T, [unit], WantedIndex("a", Built)) for _ in range(2)
        )
    assert first.segment is not second.segment
    assert "no room for an index in memory" in caplog.text
    assert unit.seen is None
    assert room.left == 50
    kept.close()


def test_what_large_indexes_leave_behind_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(freeing, "_trim", lambda: given.append)
    kept = KeptSegments(Room(1000))
    large = pa.RecordBatch.from_pydict({"k": range(freeing.FEWEST_ROWS)})
    for batch in (BATCH, large):
        kept.segments_over(T, of_chunks(Chunk((batch,))), WantedIndex(("words",), Built))
    assert given == [0]
    kept.close(wait=True)
    monkeypatch.undo()
    freeing.give_back_after(freeing.FEWEST_ROWS)
