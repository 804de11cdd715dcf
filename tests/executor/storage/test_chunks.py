"""Chunks in memory: read once, counted exactly, freed with their last reader."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import (
    CarawayError,
    DatasetDamagedError,
    DiskFullError,
    ExecutionError,
    OutOfMemoryQueryError,
    ResultStoreAwayError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.rows.held import Chunk
from caraway_engine.stored import MissingChunks
from caraway_executor.resources.room import TaskMemory
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.stores import Stores
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.deadlines import eventually
from tests.kit.stored import path_of, stored

T = TableName("orders")
ROWS = pa.table({"k": pa.array(range(1000)), "s": [f"text {n}" for n in range(1000)]})
WAIT_S = 60.0


class CountingStore(FolderResultStore):
    """A folder that counts reads, and lets them wait or fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[int] = []
        self.most_at_once = 0
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.error: CarawayError | None = None
        self._under_way = 0

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        self.reads.append(chunk.index)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            await self.may_go.wait()
            if self.error is not None:
                raise self.error
            async for batch in super().read_chunk(key, chunk):
                yield batch
        finally:
            self._under_way -= 1


class OneStore(Stores):
    def __init__(self, store: ResultStore) -> None:
        super().__init__()
        self._store = store

    async def at(self, place: ResultPlace) -> ResultStore:
        return self._store


def kept(folder: Path, limit_bytes: int | None = None) -> tuple[KeptChunks, CountingStore]:
    store = CountingStore(folder)
    return KeptChunks(OneStore(store), TaskMemory(limit_bytes)), store


def all_of(spec: StoredTable) -> list[MissingChunks]:
    return [MissingChunks(T, spec, spec.chunks)]


def size(spec: StoredTable) -> int:
    return sum(chunk.size_bytes for chunk in spec.chunks)


def values(chunks: Sequence[Chunk]) -> list[int]:
    """The values of the chunks, each of which may be there several times."""
    once = {id(chunk): chunk for chunk in chunks}.values()
    return sorted(k for chunk in once for batch in chunk.batches for k in batch["k"].to_pylist())


async def is_free(chunks: KeptChunks) -> None:
    async def free() -> bool:
        gc.collect()
        return chunks._room.taken_bytes == 0

    await eventually(free, "all bytes are given back")


async def test_chunks_are_read_once_and_freed_with_their_last_reader(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 5)
    chunks, store = kept(tmp_path)
    held = await chunks.bring(all_of(spec))
    assert values(held) == list(range(1000)) and chunks._room.taken_bytes == size(spec)
    again = await chunks.bring(all_of(spec))
    assert {id(each) for each in again} == {id(each) for each in held}
    assert sorted(store.reads) == [0, 1, 2, 3, 4]
    del held
    gc.collect()
    assert chunks.held(spec.chunks[0]) is not None
    del again
    await is_free(chunks)
    assert chunks.held(spec.chunks[0]) is None


@pytest.mark.parametrize("wanted", [[], "no chunks"])
async def test_nothing_wanted_is_nothing_read(tmp_path: Path, wanted: Any) -> None:
    spec = await stored(tmp_path, ROWS, 1)
    chunks, store = kept(tmp_path)
    missing = [MissingChunks(T, spec, ())] if wanted else []
    assert await chunks.bring(missing) == [] and store.reads == []


async def test_few_chunks_are_read_at_once(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 20)
    chunks, store = kept(tmp_path)
    held = await chunks.bring(all_of(spec))
    assert len(held) == 20 and 1 < store.most_at_once <= 4


async def test_readers_at_once_share_one_read(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, store = kept(tmp_path)
    store.may_go.clear()
    readers = [asyncio.ensure_future(chunks.bring(all_of(spec))) for _ in range(5)]
    for _ in range(20):
        await asyncio.sleep(0)
    store.may_go.set()
    found = await asyncio.gather(*readers)
    assert sorted(store.reads) == [0, 1, 2]
    assert all(values(each) == list(range(1000)) for each in found)
    assert chunks._room.taken_bytes == size(spec)


async def test_a_cancelled_reader_does_not_take_the_chunks_from_others(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, store = kept(tmp_path)
    store.may_go.clear()
    first = asyncio.ensure_future(chunks.bring(all_of(spec)))
    other = asyncio.ensure_future(chunks.bring(all_of(spec)))
    for _ in range(20):
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    store.may_go.set()
    assert values(await asyncio.wait_for(other, WAIT_S)) == list(range(1000))
    assert first.cancelled() and sorted(store.reads) == [0, 1, 2]


async def test_chunks_that_nobody_waits_for_any_more_are_freed(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, store = kept(tmp_path)
    store.may_go.clear()
    reader = asyncio.ensure_future(chunks.bring(all_of(spec)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert chunks._room.taken_bytes > 0
    reader.cancel()
    await asyncio.wait((reader,))
    store.may_go.set()
    # Its traceback refers to the chunks that it had read.
    del reader
    await is_free(chunks)
    assert not chunks._reading


async def test_closing_ends_reads_under_way_and_gives_their_bytes_back(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, store = kept(tmp_path)
    store.may_go.clear()
    reader = asyncio.ensure_future(chunks.bring(all_of(spec)))
    for _ in range(20):
        await asyncio.sleep(0)
    chunks.close()
    await asyncio.wait((reader,), timeout=WAIT_S)
    assert reader.done()
    del reader
    await is_free(chunks)


@pytest.mark.parametrize(
    ("error", "type_", "said"),
    [
        (DiskFullError("no space"), DiskFullError, "dataset 'orders': no space"),
        (ResultStoreAwayError("away"), ResultStoreAwayError, "dataset 'orders': away"),
        (ExecutionError("odd"), ExecutionError, r"dataset 'orders': .*\(odd\); refresh"),
    ],
)
async def test_an_error_of_the_store_names_the_dataset_and_is_not_remembered(
    tmp_path: Path, error: CarawayError, type_: type[Exception], said: str
) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, store = kept(tmp_path)
    store.error = error
    with pytest.raises(type_, match=said):
        await chunks.bring(all_of(spec))
    await is_free(chunks)
    store.error = None
    assert values(await chunks.bring(all_of(spec))) == list(range(1000))


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "empty"])
async def test_a_damaged_chunk_is_told_without_its_path(tmp_path: Path, damage: str) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, _ = kept(tmp_path)
    path = path_of(spec, 1)
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes({"flipped": bytes(content), "cut": bytes(content[:-9]),
                          "empty": b""}[damage])  # fmt: skip
    with pytest.raises(DatasetDamagedError) as caught:
        await chunks.bring(all_of(spec))
    assert "orders" in caught.value.message and str(tmp_path) not in caught.value.message
    del caught
    await is_free(chunks)


async def test_what_cannot_fit_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 4)
    chunks, store = kept(tmp_path, size(spec) - 1)
    with pytest.raises(OutOfMemoryQueryError, match=r"dataset 'orders' does not fit.*Accelerate"):
        await chunks.bring(all_of(spec))
    assert store.reads == [] and chunks._room.taken_bytes == 0
    exact, _ = kept(tmp_path, size(spec))
    assert len(await exact.bring(all_of(spec))) == 4


async def test_chunks_that_are_here_need_no_room_again(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 4)
    chunks, store = kept(tmp_path, size(spec))
    held = await chunks.bring(all_of(spec))
    assert values(await chunks.bring(all_of(spec))) == list(range(1000)) and len(store.reads) == 4
    part = await chunks.bring([MissingChunks(T, spec, spec.chunks[:2])])
    assert values(part) == list(range(500)) and len(held) == 4


async def test_rows_that_were_just_stored_are_kept_without_reading(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 2)
    chunks, store = kept(tmp_path)
    batches = ROWS.slice(0, 500).to_batches()
    chunks.keep(spec.key, spec.chunks[0], batches)
    chunks.keep(spec.key, spec.chunks[0], batches)
    assert chunks._room.taken_bytes == spec.chunks[0].size_bytes
    held = await chunks.bring(all_of(spec))
    assert store.reads == [1] and values(held) == list(range(1000))
    chunks.settle([spec.key])
    assert chunks.held(spec.chunks[0]) is not None
    del held
    await is_free(chunks)


async def test_kept_rows_make_room_for_what_is_asked_for(tmp_path: Path) -> None:
    spec = await stored(tmp_path / "a", ROWS, 1)
    other = await stored(tmp_path / "b", pa.table({"k": pa.array(range(1000, 2000))}), 1)
    chunks, _ = kept(tmp_path / "b", size(spec) + size(other) - 1)
    chunks.keep(spec.key, spec.chunks[0], ROWS.to_batches())
    assert chunks.held(spec.chunks[0]) is not None
    assert values(await chunks.bring(all_of(other))) == list(range(1000, 2000))
    gc.collect()
    assert chunks.held(spec.chunks[0]) is None
    chunks.keep(spec.key, spec.chunks[0], ROWS.to_batches())


async def test_rows_are_not_kept_where_there_is_no_room(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 1)
    chunks, _ = kept(tmp_path, size(spec) - 1)
    chunks.keep(spec.key, spec.chunks[0], ROWS.to_batches())
    assert chunks.held(spec.chunks[0]) is None and chunks._room.taken_bytes == 0


async def test_the_same_rows_of_two_versions_are_one_chunk(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 2)
    newer = await stored(tmp_path, ROWS, 2, key="newer")
    chunks, store = kept(tmp_path)
    held = await chunks.bring(all_of(spec))
    again = await chunks.bring(all_of(newer))
    assert {id(each) for each in again} == {id(each) for each in held}
    assert len(store.reads) == 2 and chunks._room.taken_bytes == size(spec)


async def test_one_chunk_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 1)
    chunks, store = kept(tmp_path, size(spec))
    twice = [MissingChunks(T, spec, spec.chunks * 2)]
    held = await chunks.bring(twice)
    assert len({id(each) for each in held}) == 1 and store.reads == [0]


async def test_bytes_are_counted_for_as_long_as_they_are_kept(tmp_path: Path) -> None:
    chunks, _ = kept(tmp_path, 100)
    first = chunks.count_bytes(T, 60)
    with pytest.raises(OutOfMemoryQueryError, match=r"41 more bytes are needed, 60 are taken"):
        chunks.count_bytes(T, 41)
    second = chunks.count_bytes(T, 40)
    assert chunks._room.taken_bytes == 100
    del first, second
    assert chunks._room.taken_bytes == 0


async def test_only_damaged_chunks_are_stored_again(tmp_path: Path) -> None:
    spec = await stored(tmp_path, ROWS, 3)
    chunks, _ = kept(tmp_path)
    held = await chunks.bring(all_of(spec))
    before = path_of(spec, 1).read_bytes()
    path_of(spec, 1).write_bytes(b"")
    assert await chunks.put_back(all_of(spec)[0]) == 1
    assert path_of(spec, 1).read_bytes() == before
    assert await chunks.put_back(all_of(spec)[0]) == 0
    del held
    gc.collect()
    path_of(spec, 1).write_bytes(b"")
    assert await chunks.put_back(all_of(spec)[0]) == 0


async def test_a_mapped_table_takes_no_memory(tmp_path: Path) -> None:
    spec = replace(await stored(tmp_path, ROWS, 3), is_mapped=True)
    chunks, _ = kept(tmp_path, 1_000_000)
    held = await chunks.bring(all_of(spec))
    assert values(held) == list(range(1000)) and chunks._room.taken_bytes == 0
