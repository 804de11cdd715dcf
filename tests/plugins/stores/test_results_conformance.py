"""The conformance suite of ResultStore, written against the Protocol only."""

import asyncio
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3

from caraway_core.errors import CarawayError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_executor.storage.mapped import Local, Remote
from caraway_plugins.stores import checksums

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.dictionary(pa.int32(), pa.string()), metadata={"unit": "none"}),
        pa.field("tags", pa.list_(pa.string())),
    ],
    metadata={"answer": "42"},
)


def batch(*ids: int) -> pa.RecordBatch:
    rows = [{"id": id_, "text": f"text {id_ % 3}", "tags": [None, "x"] * id_} for id_ in ids]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


async def read(store: ResultStore, key: str, chunk: ChunkInfo) -> list[Any]:
    return [found async for found in store.read_chunk(key, chunk)]


async def test_chunks_come_back_as_they_were(results: ResultStore) -> None:
    batches = [batch(1, 2), batch(), batch(3), batch(*range(4, 900)).slice(10, 500)]
    chunk = await results.write_chunk("job-1", 3, SCHEMA, batches)
    assert (chunk.index, chunk.row_count) == (3, 503)
    found = await read(results, "job-1", chunk)
    assert all(one.schema.equals(SCHEMA, check_metadata=True) for one in found)
    assert found == batches


async def test_chunk_without_batches_is_empty(results: ResultStore) -> None:
    chunk = await results.write_chunk("job-1", 0, SCHEMA, [])
    assert chunk.row_count == 0
    assert await read(results, "job-1", chunk) == []


async def test_chunks_of_a_key_and_of_keys_stay_apart(results: ResultStore) -> None:
    chunks = {
        (key, index): await results.write_chunk(key, index, SCHEMA, [batch(index, len(key))])
        for key in ("a", "a.b")
        for index in (0, 1)
    }
    for (key, index), chunk in chunks.items():
        assert await read(results, key, chunk) == [batch(index, len(key))]


async def test_second_write_of_a_chunk_leaves_the_first_readable(results: ResultStore) -> None:
    first = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    second = await results.write_chunk("job-1", 0, SCHEMA, [batch(2)])
    again = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    assert again == first
    assert await read(results, "job-1", first) == [batch(1)]
    assert await read(results, "job-1", second) == [batch(2)]


@pytest.mark.parametrize("algorithm", [hashlib.sha256, blake3])
async def test_chunks_with_checksums_of_any_release_are_read_and_put_back(
    results: ResultStore, algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(checksums, "_ALGORITHMS", (algorithm,))
        chunk = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    assert await read(results, "job-1", chunk) == [batch(1)]
    assert await results.write_chunk("job-1", 0, SCHEMA, [batch(1)], chunk.checksum) == chunk
    other = await results.write_chunk("job-1", 0, SCHEMA, [batch(2)], chunk.checksum)
    assert other.checksum != chunk.checksum
    assert await read(results, "job-1", chunk) == [batch(1)]
    assert await read(results, "job-1", other) == [batch(2)]


async def test_keys_are_those_with_chunks(results: ResultStore) -> None:
    assert await results.keys() == []
    for key in ("b", "a"):
        await results.write_chunk(key, 0, SCHEMA, [batch(1)])
    assert await results.keys() == ["a", "b"]
    await results.delete("a")
    assert await results.keys() == ["b"]


async def test_deleted_key_is_gone_and_may_be_deleted_again(results: ResultStore) -> None:
    chunk = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    for _ in range(2):
        await results.delete("job-1")
    with pytest.raises(ResultStoreError, match="run the query again"):
        await read(results, "job-1", chunk)
    assert await results.write_chunk("job-1", 0, SCHEMA, [batch(1)]) == chunk


async def test_reader_finishes_a_chunk_that_is_deleted_meanwhile(results: ResultStore) -> None:
    chunk = await results.write_chunk("job-1", 0, SCHEMA, [batch(1), batch(2)])
    reader = results.read_chunk("job-1", chunk)
    found = [await anext(reader)]
    await results.delete("job-1")
    found += [one async for one in reader]
    assert found == [batch(1), batch(2)]


async def test_missing_chunks_are_refused(results: ResultStore) -> None:
    chunk = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    other = dataclasses.replace(chunk, checksum="0" * 64)
    for key, asked in (
        ("job-2", chunk),
        ("job-1", other),
        ("job-1", dataclasses.replace(chunk, index=1)),
    ):
        with pytest.raises(ResultStoreError):
            await read(results, key, asked)


async def test_many_writers_at_once(results: ResultStore) -> None:
    chunks = await asyncio.gather(
        *(results.write_chunk("job-1", index, SCHEMA, [batch(index)]) for index in range(20))
    )
    for index, chunk in enumerate(chunks):
        assert await read(results, "job-1", chunk) == [batch(index)]


@pytest.mark.parametrize(
    "key",
    ["", ".", "..", "../x", "a/b", "/etc", "a\\b", ".unfinished", "a\0", "a\n", "é", "a" * 201],
)
async def test_keys_that_are_not_plain_names_are_refused(results: ResultStore, key: str) -> None:
    chunk = await results.write_chunk("job-1", 0, SCHEMA, [batch(1)])
    with pytest.raises(CarawayError, match="not allowed"):
        await results.write_chunk(key, 0, SCHEMA, [batch(1)])
    with pytest.raises(CarawayError, match="not allowed"):
        await read(results, key, chunk)
    with pytest.raises(CarawayError, match="not allowed"):
        await results.delete(key)
    assert await results.keys() == ["job-1"]


@pytest.mark.parametrize("checksum", ["", "../../x", "A" * 64, "0" * 63])
async def test_checksums_cannot_name_other_files(results: ResultStore, checksum: str) -> None:
    with pytest.raises(CarawayError):
        await read(results, "job-1", ChunkInfo(0, 1, 1, checksum))


async def test_negative_index_is_refused(results: ResultStore) -> None:
    with pytest.raises(CarawayError):
        await results.write_chunk("job-1", -1, SCHEMA, [batch(1)])
    assert await results.keys() == []


async def test_batch_of_another_schema_is_refused_whole(results: ResultStore) -> None:
    other = pa.RecordBatch.from_pydict({"other": [1]})
    with pytest.raises(ResultStoreError, match="chunk 0"):
        await results.write_chunk("job-1", 0, SCHEMA, [batch(1), other])
    assert await results.keys() == []


async def test_chunks_are_files_of_this_host_or_are_copied_as_they_are(
    results: ResultStore, tmp_path: Path
) -> None:
    chunk = await results.write_chunk("job-1", 2, SCHEMA, [batch(1, 2), batch(3)])
    target = tmp_path / "copy"
    if isinstance(results, Local):
        target = results.path_of("job-1", chunk)
    else:
        assert isinstance(results, Remote)
        await results.copy_chunk("job-1", chunk, target)
        with pytest.raises(ResultStoreError, match=r"chunk 2 cannot be read: .* cannot hold"):
            await results.copy_chunk("job-1", chunk, tmp_path / "away" / "copy")
        await results.delete("job-1")
        with pytest.raises(ResultStoreError, match=r"^result 'job-1': chunk 2 no longer exists"):
            await results.copy_chunk("job-1", chunk, tmp_path / "other")
    assert checksums.of(target.read_bytes()) == chunk.checksum
