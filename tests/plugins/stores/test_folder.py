"""Failures that only folders have: failing disks, full disks and dead writers."""

import asyncio
import fcntl
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO, cast

import pyarrow as pa
import pytest

from caraway_core.errors import DiskFullError, ResultStoreAwayError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_plugins.stores import chunks, durable
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.deadlines import eventually
from tests.kit.disks import BROKEN, FULL, disk_with_room_for, failing_fsync

ROWS = pa.RecordBatch.from_pydict({"n": list(range(10_000))})
UNFINISHED = ".unfinished"

HELD_BY_A_WRITER = """
import pathlib, sys
from caraway_plugins.stores.durable import UnfinishedFiles
with UnfinishedFiles(pathlib.Path(sys.argv[1])).unfinished() as handle:
    handle.write(b"half"), handle.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def stored(root: Path) -> tuple[FolderResultStore, ChunkInfo, Path]:
    store = FolderResultStore(root)
    chunk = await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])
    (path,) = files(root)
    return store, chunk, path


async def refusal(store: FolderResultStore, chunk: ChunkInfo) -> str:
    """Read a chunk, and expect an error before the first batch."""
    with pytest.raises(ResultStoreError) as caught:
        await anext(store.read_chunk("job-1", chunk))
    return caught.value.message


async def test_chunk_is_one_arrow_stream_that_its_info_describes(tmp_path: Path) -> None:
    _, chunk, path = await stored(tmp_path)
    assert path.stat().st_size == chunk.size_bytes
    assert pa.ipc.open_stream(path.read_bytes()).read_all().num_rows == chunk.row_count


@pytest.mark.parametrize("place", [0, 5, 200, 40_000, -1])
async def test_chunk_with_one_wrong_bit_is_refused(tmp_path: Path, place: int) -> None:
    store, chunk, path = await stored(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    assert "chunk 0 is damaged" in await refusal(store, chunk)


@pytest.mark.parametrize("size_bytes", [0, 10, 40_000])
async def test_chunk_that_was_cut_is_refused(tmp_path: Path, size_bytes: int) -> None:
    store, chunk, path = await stored(tmp_path)
    path.write_bytes(path.read_bytes()[:size_bytes])
    assert "chunk 0 is damaged" in await refusal(store, chunk)


async def test_chunk_with_more_at_its_end_is_refused(tmp_path: Path) -> None:
    store, chunk, path = await stored(tmp_path)
    path.write_bytes(path.read_bytes() + b"x")
    assert "chunk 0 is damaged" in await refusal(store, chunk)


async def test_long_chunk_is_checked_and_read_in_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(chunks, "GROUP_BYTES", 100_000)
    store = FolderResultStore(tmp_path)
    chunk = await store.write_chunk("job-1", 0, ROWS.schema, [ROWS] * 5)
    assert [found async for found in store.read_chunk("job-1", chunk)] == [ROWS] * 5
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "chunk 0 is damaged" in await refusal(store, chunk)


async def test_store_opens_at_its_place(tmp_path: Path) -> None:
    _, chunk, _ = await stored(tmp_path)
    store = FolderResultStore.at(ResultPlace("file", str(tmp_path)))
    assert [found async for found in store.read_chunk("job-1", chunk)] == [ROWS]


@pytest.mark.parametrize("is_past_cache", [False, True])
@pytest.mark.parametrize(("count", "size_bytes"), [(1, 0), (1, 100), (1, 50_000), (40, 1_500_000)])
async def test_full_disk_fails_and_leaves_nothing(
    tmp_path: Path, count: int, size_bytes: int, is_past_cache: bool
) -> None:
    store = FolderResultStore(tmp_path)
    store = store.past_cache() if is_past_cache else store
    rows = [ROWS] * count
    with (
        disk_with_room_for(size_bytes),
        pytest.raises(DiskFullError, match="'job-1': chunk 0 cannot be stored"),
    ):
        await store.write_chunk("job-1", 0, ROWS.schema, rows)
    assert files(tmp_path) == []
    assert await store.keys() == []
    await store.write_chunk("job-1", 0, ROWS.schema, rows)


@pytest.mark.parametrize(
    ("number", "kind"),
    [*((each, DiskFullError) for each in FULL), *((each, ResultStoreAwayError) for each in BROKEN)],
)
async def test_disk_that_fails_at_the_end_leaves_nothing(
    tmp_path: Path, number: int, kind: type[Exception]
) -> None:
    store = FolderResultStore(tmp_path)
    with failing_fsync(number), pytest.raises(kind) as caught:
        await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])
    assert "/secret" not in str(caught.value)
    assert files(tmp_path) == []
    await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])


async def test_check_finds_a_full_disk(tmp_path: Path) -> None:
    store = FolderResultStore(tmp_path)
    await store.check()
    with disk_with_room_for(0), pytest.raises(DiskFullError, match="cannot be used"):
        await store.check()
    assert files(tmp_path) == []


async def test_delete_frees_the_disk(tmp_path: Path) -> None:
    store, _, _ = await stored(tmp_path)
    await store.delete("job-1")
    assert files(tmp_path) == []


async def test_start_removes_orphans_and_keeps_results(tmp_path: Path) -> None:
    _, chunk, path = await stored(tmp_path)
    (tmp_path / UNFINISHED / "chunk").write_bytes(b"half")
    (tmp_path / UNFINISHED / "discarded").mkdir()
    (tmp_path / UNFINISHED / "discarded" / "chunk").write_bytes(b"whole")
    store = FolderResultStore(tmp_path)
    assert files(tmp_path) == [path]
    assert [found async for found in store.read_chunk("job-1", chunk)] == [ROWS]


def test_start_leaves_what_a_living_process_writes_until_it_is_killed(tmp_path: Path) -> None:
    FolderResultStore(tmp_path)
    command = [sys.executable, "-c", HELD_BY_A_WRITER, str(tmp_path / UNFINISHED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout and writer.stdout.readline() == b"writing\n"
            FolderResultStore(tmp_path)
            assert [path.read_bytes() for path in files(tmp_path)] == [b"half"]
        finally:
            writer.kill()
    assert [path.read_bytes() for path in files(tmp_path)] == [b"half"]
    FolderResultStore(tmp_path)
    assert files(tmp_path) == []


async def test_writer_begins_again_whose_file_was_taken_for_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderResultStore(tmp_path)
    flock, early = fcntl.flock, [True]

    def late_flock(file: BinaryIO, operation: int) -> None:
        if early and early.pop():
            FolderResultStore(tmp_path)
        flock(file, operation)

    monkeypatch.setattr(durable, "fcntl", SimpleNamespace(**vars(fcntl) | {"flock": late_flock}))
    chunk = await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])
    assert not early
    assert [found async for found in store.read_chunk("job-1", chunk)] == [ROWS]


async def test_foreign_files_are_no_keys(tmp_path: Path) -> None:
    store, _, _ = await stored(tmp_path)
    (tmp_path / "README").write_text("of the user")
    (tmp_path / "empty").mkdir()
    assert await store.keys() == ["job-1"]


def test_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultStoreError, match="set another folder"):
        FolderResultStore(tmp_path / "file" / "results")


async def test_folder_that_vanished_is_an_error_of_the_query(tmp_path: Path) -> None:
    store = FolderResultStore(tmp_path / "results")
    (tmp_path / "results" / UNFINISHED).rmdir()
    (tmp_path / "results").rmdir()
    with pytest.raises(ResultStoreError):
        await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])
    with pytest.raises(ResultStoreError):
        await store.keys()


def is_open(path: Path) -> bool:
    """Return whether this process has the file open."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if each.readlink() == path:
                return True
    return False


async def test_reader_that_leaves_closes_the_file(tmp_path: Path) -> None:
    store, chunk, path = await stored(tmp_path)
    reader = cast("AsyncGenerator[pa.RecordBatch]", store.read_chunk("job-1", chunk))
    await anext(reader)
    assert is_open(path)
    await reader.aclose()
    assert not is_open(path)


async def test_file_of_a_cancelled_reader_is_closed_by_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, chunk, path = await stored(tmp_path)
    begun, gate = threading.Event(), threading.Event()

    def read(_source: BinaryIO, _key: str, _chunk: ChunkInfo) -> Iterator[list[pa.RecordBatch]]:
        begun.set()
        gate.wait()
        yield [ROWS]

    monkeypatch.setattr(chunks, "read", read)
    reading = asyncio.ensure_future(anext(store.read_chunk("job-1", chunk)))
    try:
        await asyncio.to_thread(begun.wait)
        reading.cancel()
        # The frames of the reader stay alive with the exception.
        with pytest.raises(asyncio.CancelledError) as left:
            await reading
        assert is_open(path)
    finally:
        gate.set()

    async def is_closed() -> bool:
        return not is_open(path)

    await eventually(is_closed, "the file is closed")
    assert left.value.__traceback__ is not None
