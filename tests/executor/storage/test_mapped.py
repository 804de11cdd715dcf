"""Chunks that stay on disk: read where they lie, or from a copy that outlives the process."""

import errno
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DiskFullError, OutOfMemoryQueryError, ResultStoreError
from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.results import ChunkInfo
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage.mapped import MappedChunks
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.engine import snapshot

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
KEY = "d-one"


def batch(start: int, rows: int = 1000) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.record_batch({"id": list(ids), "v": [f"value {n}" for n in ids]}, schema=SCHEMA)


class Elsewhere:
    """A store whose chunks are not files of this host."""

    def __init__(self, inner: FolderResultStore) -> None:
        self._inner = inner
        self.reads = 0
        self.change: Callable[[bytes], bytes] = lambda content: content

    async def check(self) -> None:
        await self._inner.check()

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        return await self._inner.write_chunk(key, index, schema, batches, checksum)

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        raise AssertionError("what is copied is not read and written")
        yield

    async def copy_chunk(self, key: str, chunk: ChunkInfo, target: Path) -> None:
        self.reads += 1
        target.write_bytes(self.change(self._inner.path_of(key, chunk).read_bytes()))

    async def delete(self, key: str) -> None:
        await self._inner.delete(key)

    async def keys(self) -> Sequence[str]:
        return await self._inner.keys()


@pytest.fixture
def store(tmp_path: Path) -> FolderResultStore:
    return FolderResultStore(tmp_path / "results")


async def write(store: FolderResultStore, count: int = 3) -> list[ChunkInfo]:
    return [
        await store.write_chunk(KEY, number, SCHEMA, [batch(1000 * number)])
        for number in range(count)
    ]


async def test_a_chunk_of_this_host_takes_no_memory(store: FolderResultStore) -> None:
    written = await store.write_chunk(KEY, 0, SCHEMA, [batch(0, 100_000)])
    before = pa.total_allocated_bytes()
    found = await MappedChunks(None).read(store, KEY, written)
    assert found is not None
    assert pa.total_allocated_bytes() - before < written.size_bytes / 10
    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(100_000))


async def test_damage_is_found_before_it_is_read(store: FolderResultStore) -> None:
    (chunk,) = await write(store, 1)
    path = store.path_of(KEY, chunk)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ResultStoreError, match="damaged"):
        await MappedChunks(None).read(store, KEY, chunk)
    path.unlink()
    with pytest.raises(ResultStoreError, match="no longer exists"):
        await MappedChunks(None).read(store, KEY, chunk)


async def test_copies_outlive_the_process_and_are_checked(
    store: FolderResultStore, tmp_path: Path
) -> None:
    chunks, elsewhere, folder = await write(store), Elsewhere(store), tmp_path / "copies"
    for _ in range(2):
        mapped = MappedChunks(folder)
        for number, chunk in enumerate(chunks):
            found = await mapped.read(elsewhere, KEY, chunk)
            assert found == [batch(1000 * number)]
    assert elsewhere.reads == 3
    for path in folder.glob("*.arrow"):
        path.write_bytes(b"damaged")
    assert await MappedChunks(folder).read(elsewhere, KEY, chunks[0]) == [batch(0)]
    assert elsewhere.reads == 4


async def test_a_copy_is_what_was_written_by_whatever_version_of_arrow(
    store: FolderResultStore, tmp_path: Path
) -> None:
    content = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(content, SCHEMA, options=options) as writer:
        writer.write_batch(batch(0))
    written = content.getvalue().to_pybytes()
    chunk = ChunkInfo(0, 1000, len(written), hashlib.sha256(written).hexdigest())
    path = store.path_of(KEY, chunk)
    path.parent.mkdir()
    path.write_bytes(written)

    mapped = MappedChunks(tmp_path / "copies")

    assert await mapped.read(Elsewhere(store), KEY, chunk) == [batch(0)]
    assert [each.read_bytes() for each in (tmp_path / "copies").iterdir()] == [written]


async def test_a_copy_that_is_damaged_on_its_way_is_not_kept(
    store: FolderResultStore, tmp_path: Path
) -> None:
    (chunk,), elsewhere = await write(store, 1), Elsewhere(store)
    elsewhere.change = lambda content: content[:-1] + b"x"
    mapped = MappedChunks(tmp_path / "copies")

    with pytest.raises(ResultStoreError, match=f"result '{KEY}': chunk 0 is damaged"):
        await mapped.read(elsewhere, KEY, chunk)
    assert not list((tmp_path / "copies").iterdir())

    elsewhere.change = lambda content: content
    assert await mapped.read(elsewhere, KEY, chunk) == [batch(0)]


async def test_a_folder_that_takes_no_copy_is_named(
    store: FolderResultStore, tmp_path: Path
) -> None:
    (chunk,), elsewhere = await write(store, 1), Elsewhere(store)

    def fail(_content: bytes) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    elsewhere.change = fail
    with pytest.raises(DiskFullError, match="a copy of chunk 0 on its disk: No space left"):
        await MappedChunks(tmp_path / "copies").read(elsewhere, KEY, chunk)
    assert not list((tmp_path / "copies").iterdir())


async def test_copies_that_were_not_used_for_longest_go(
    store: FolderResultStore, tmp_path: Path
) -> None:
    chunks, elsewhere = await write(store), Elsewhere(store)
    mapped = MappedChunks(tmp_path / "copies", sum(each.size_bytes for each in chunks[:2]))
    held = await mapped.read(elsewhere, KEY, chunks[0])
    await mapped.read(elsewhere, KEY, chunks[1])
    await mapped.read(elsewhere, KEY, chunks[0])
    await mapped.read(elsewhere, KEY, chunks[2])
    names = {path.stem.partition("-")[2] for path in (tmp_path / "copies").glob("*.arrow")}
    assert names == {chunks[0].checksum, chunks[2].checksum}
    await mapped.read(elsewhere, KEY, chunks[1])
    assert held == [batch(0)]


async def test_without_a_place_for_copies_nothing_is_mapped(store: FolderResultStore) -> None:
    (chunk,) = await write(store, 1)
    assert await MappedChunks(None).read(Elsewhere(store), KEY, chunk) is None


async def test_a_dataset_in_files_may_be_larger_than_the_memory(
    store: FolderResultStore, tmp_path: Path
) -> None:
    chunks = tuple(
        [await store.write_chunk(KEY, n, SCHEMA, [batch(100_000 * n, 100_000)]) for n in range(20)]
    )
    limit = 16 << 20
    assert sum(each.size_bytes for each in chunks) > 2 * limit
    place = ResultPlace("file", str(tmp_path / "results"))
    sql = "SELECT count(*) AS n, sum(id) AS s FROM numbers WHERE v LIKE 'value 1%'"
    expected = [n for n in range(2_000_000) if str(n).startswith("1")]
    for is_mapped in (True, False):
        executor = LocalExecutor(EngineSettings(1, limit, chunks_directory=tmp_path / "copies"))
        spec = StoredTable(SCHEMA, place, KEY, chunks, is_mapped=is_mapped)
        executor.install(snapshot({"numbers": spec}))
        try:
            if is_mapped:
                await executor.load(TableName("numbers"), spec)
                stream = await executor.execute(new_query_id(), Statement(sql, {}))
                (row,) = pa.Table.from_batches([each async for each in stream]).to_pylist()
                assert row == {"n": len(expected), "s": sum(expected)}
            else:
                with pytest.raises(OutOfMemoryQueryError, match="does not fit"):
                    await executor.load(TableName("numbers"), spec)
        finally:
            executor.close()
