"""Segments of indexes are built once, shared by versions, and go with their rows."""

import gc
import logging
import weakref
from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.errors import OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_engine.rows import units
from caraway_engine.rows.held import Chunk
from caraway_executor.indexes.kept import KeptSegments, Wanted

T = TableName("t")
BATCH = pa.RecordBatch.from_pydict({"k": list(range(10))})


class Room:
    """Counts the bytes that are taken."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None

    def take(self, table: TableName, size_bytes: int) -> object:
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
    nbytes = 100


def test_a_segment_is_built_once_and_goes_with_its_chunk() -> None:
    room, built = Room(1000), []

    def build() -> Built:
        built.append(1)
        return Built()

    kept = KeptSegments(room)
    chunk = Chunk((BATCH, BATCH))
    for _ in range(2):
        # Each version cuts the chunk anew.
        first, second = units.of_chunk(T, BATCH.schema, chunk)
        assert kept.of(T, first, Wanted("a", build)) is kept.of(T, first, Wanted("a", build))
        assert kept.of(T, first, Wanted("b", build)) is not kept.of(T, second, Wanted("a", build))
    assert (len(built), room.left) == (3, 700)
    del chunk, first, second
    gc.collect()
    assert room.left == 1000


def test_without_room_a_segment_is_built_for_each_search(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(50)
    kept = KeptSegments(room)
    (unit,) = units.of_chunk(T, BATCH.schema, Chunk((BATCH,)))
    with caplog.at_level(logging.WARNING):
        assert kept.of(T, unit, Wanted("a", Built)) is not kept.of(T, unit, Wanted("a", Built))
    assert "no room for an index in memory" in caplog.text
    assert (unit.is_whole, replace(unit, dead=(1,)).is_whole) == (True, False)
    assert room.left == 50
