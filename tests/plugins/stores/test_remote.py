"""Behaviour that only `caraway store` has, including its failures."""

import asyncio
import gc
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DiskFullError, ResultStoreAwayError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins.stores import chunks
from caraway_plugins.stores.remote import RemoteResultStore
from tests.kit import deadlines
from tests.kit.remote_stores import TOKEN, RemoteStore, remote_store
from tests.kit.wires import recorded

SCHEMA = pa.schema([pa.field("a", pa.int64())])


def rows(count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(count))], schema=SCHEMA)


def opened(store: RemoteStore, prefix: str = "p/jobs", patience_s: float = 20) -> RemoteResultStore:
    return RemoteResultStore(store.address, prefix, TOKEN, patience_s)


async def read(store: RemoteResultStore, key: str, chunk: ChunkInfo) -> list[pa.RecordBatch]:
    return [batch async for batch in store.read_chunk(key, chunk)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteStore]:
    with remote_store(tmp_path_factory.mktemp("own")) as store:
        yield store


@pytest.fixture
def own(running: RemoteStore) -> Iterator[RemoteStore]:
    """An empty store that no other test uses now; the test may kill it."""
    assert running.process is not None
    if running.process.poll() is not None:
        running.start()
    yield running
    for folder in running.data.glob("[!.]*"):
        shutil.rmtree(folder)


async def test_chunks_lie_as_plain_files_below_the_prefix(own: RemoteStore) -> None:
    chunk = await opened(own).write_chunk("job-1", 2, SCHEMA, [rows(3)])
    name = chunks.file_name(2, chunk.checksum)
    assert (own.data / "p" / "jobs" / "job-1" / name).stat().st_size == chunk.size_bytes
    assert not list((own.data / ".unfinished").iterdir())


async def test_the_token_never_travels(own: RemoteStore) -> None:
    async with recorded(own.address) as wire:
        store = RemoteResultStore(wire.address, "p/jobs", TOKEN, 20)
        await store.check()
        chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(300_000)])
        assert await read(store, "job-1", chunk) == [rows(300_000)]
        assert await store.keys() == ["job-1"]
        await store.delete("job-1")

    assert b"Authorization: Caraway " in wire.sent
    assert TOKEN.encode() not in wire.sent


async def test_store_without_a_prefix(own: RemoteStore) -> None:
    store = opened(own, "")
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(3)])
    assert await store.keys() == ["job-1"]
    assert await read(store, "job-1", chunk) == [rows(3)]


async def test_prefixes_stay_apart(own: RemoteStore) -> None:
    place = own.place("id")
    jobs, datasets = (RemoteResultStore.at(place.under(name)) for name in ("jobs", "datasets"))
    await jobs.write_chunk("a", 0, SCHEMA, [rows(1)])
    await datasets.write_chunk("b", 0, SCHEMA, [rows(1)])
    assert (await jobs.keys(), await datasets.keys()) == (["a"], ["b"])
    assert await RemoteResultStore.at(place).keys() == [], "folders of folders are no keys"


async def test_large_chunks_go_through_a_file(
    own: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST_IN_MEMORY", 100)
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(1000), rows(500)])
    assert await read(store, "job-1", chunk) == [rows(1000), rows(500)]


@pytest.mark.parametrize("most", [100, chunks.MOST_IN_MEMORY])
async def test_damaged_chunks_are_not_shown(
    own: RemoteStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(chunks, "MOST_IN_MEMORY", most)
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(1000)])
    path = own.data / "p" / "jobs" / "job-1" / chunks.file_name(0, chunk.checksum)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(ResultStoreError, match="chunk 0 is damaged"):
        await read(store, "job-1", chunk)
    path.write_bytes(content[:-1])
    with pytest.raises(ResultStoreError, match="chunk 0 is damaged"):
        await read(store, "job-1", chunk)


async def test_nothing_acknowledged_is_lost_when_the_store_is_killed(own: RemoteStore) -> None:
    store = opened(own)
    first = await store.write_chunk("job-1", 0, SCHEMA, [rows(10)])
    acknowledged = {0: first}
    killed = asyncio.Event()

    async def write(index: int) -> None:
        acknowledged[index] = await store.write_chunk("job-1", index, SCHEMA, [rows(100_000)])
        if len(acknowledged) == 8:
            killed.set()

    writing = [asyncio.ensure_future(write(index)) for index in range(1, 40)]
    async with asyncio.timeout(60):
        await killed.wait()
    own.kill()
    by_then = dict(acknowledged)
    own.start()
    again = opened(own)
    for index, chunk in by_then.items():
        assert (await read(again, "job-1", chunk))[0].num_rows == (100_000 if index else 10)
    # Running calls are retried and succeed.
    await asyncio.gather(*writing)
    assert len(acknowledged) == 40
    assert not list((own.data / ".unfinished").iterdir())


async def test_reads_go_on_after_a_restart(own: RemoteStore) -> None:
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(10)])
    own.kill()
    reading = asyncio.ensure_future(read(store, "job-1", chunk))
    await asyncio.to_thread(own.start)
    assert await reading == [rows(10)]


async def test_store_that_is_away_is_reported_after_a_while(own: RemoteStore) -> None:
    store = opened(own, patience_s=0)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(10)])
    own.kill()
    away = f"the store at {own.address} does not respond: .*check that `caraway store` runs there"
    with pytest.raises(ResultStoreError, match="^result 'job-1': chunk 0 cannot be read: " + away):
        await read(store, "job-1", chunk)
    with pytest.raises(ResultStoreError, match="chunk 1 cannot be stored: " + away):
        await store.write_chunk("job-1", 1, SCHEMA, [rows(10)])
    with pytest.raises(ResultStoreError, match="^result 'job-1' cannot be deleted: " + away):
        await store.delete("job-1")
    with pytest.raises(ResultStoreError, match="^results cannot be listed: " + away):
        await store.keys()
    with pytest.raises(ResultStoreError, match="^result store cannot be used: " + away):
        await store.check()


async def test_wrong_token_is_told_at_once(own: RemoteStore) -> None:
    store = RemoteResultStore.at(own.place(token="wrong"))
    for work in (
        store.check(),
        store.write_chunk("job-1", 0, SCHEMA, [rows(300_000)]),
        store.keys(),
        store.delete("job-1"),
        read(store, "job-1", ChunkInfo(0, 1, 1, "0" * 64)),
    ):
        with pytest.raises(ResultStoreError, match="the store needs the cluster's token") as caught:
            await work
        assert "wrong" not in caught.value.message


async def test_chunk_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with remote_store(tmp_path, "--max-chunk", "10KiB") as small:
        with pytest.raises(ResultStoreError, match=r"chunk 0 cannot be stored: .*--max-chunk"):
            await opened(small).write_chunk("job-1", 0, SCHEMA, [rows(100_000)])
        await opened(small).write_chunk("job-1", 0, SCHEMA, [rows(10)])


async def test_one_store_serves_several_event_loops(own: RemoteStore) -> None:
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(10)])
    found = await asyncio.to_thread(lambda: asyncio.run(read(store, "job-1", chunk)))
    assert found == [rows(10)]


async def test_store_that_nobody_holds_closes_its_connections(own: RemoteStore) -> None:
    store = opened(own)
    await store.check()
    client, threads = store._client, store._threads
    del store

    def is_closed() -> bool:
        gc.collect()  # A thread may still hold what it returned last.
        return client.is_closed and threads._shutdown

    deadlines.until(is_closed, "the store closes its connections")


def test_token_is_not_shown() -> None:
    place = ResultPlace(
        "remote", "p", StoreSpec("caraway", "state:8095", "results", {"token": TOKEN})
    )
    store = RemoteResultStore.at(place)
    assert TOKEN not in repr(place) + place.title + repr(store)
    assert place.title == "caraway://state:8095/p"


@pytest.mark.parametrize(
    "place", [ResultPlace("remote", "p"), ResultPlace("remote", "p", StoreSpec("s3", "b", "b", {}))]
)
def test_place_outside_a_store_is_rejected(place: ResultPlace) -> None:
    with pytest.raises(ResultStoreError, match="is not in a `caraway store`"):
        RemoteResultStore.at(place)


class _Server(ThreadingHTTPServer):
    answers: list[tuple[int, str]]
    seen: list[str]


class _Scripted(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        status, text = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def scripted() -> Iterator[_Server]:
    """A server that returns responses that the test prepared."""
    with _Server(("127.0.0.1", 0), _Scripted) as server:
        server.answers, server.seen = [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [408, 422, 429, 502, 503, 504])
async def test_passing_refusals_are_tried_again(scripted: _Server, status: int) -> None:
    scripted.answers = [(status, "later"), (200, json.dumps({"keys": ["a"]}))]
    store = RemoteResultStore(f"127.0.0.1:{scripted.server_port}", "p", TOKEN)
    assert await store.keys() == ["a"]
    assert len(scripted.seen) == 2


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (507, "the disk of the store is full", DiskFullError),
        (500, "broken", ResultStoreAwayError),
        (400, "", ResultStoreError),
    ],
)
async def test_lasting_refusals_are_reported_at_once(
    scripted: _Server, status: int, text: str, kind: type[DiskFullError | ResultStoreError]
) -> None:
    scripted.answers = [(status, text)]
    store = RemoteResultStore(f"127.0.0.1:{scripted.server_port}", "p", TOKEN)
    with pytest.raises(kind) as caught:
        await store.keys()
    expected = f"results cannot be listed: {text or f'the store returned {status}'}"
    assert caught.value.message == expected


async def test_what_is_read_is_not_in_arrows_own_memory(own: RemoteStore) -> None:
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(500_000)])
    before = pa.total_allocated_bytes()
    found = await read(store, "job-1", chunk)
    assert pa.total_allocated_bytes() - before < chunk.size_bytes / 10
    assert found[0].num_rows == 500_000


async def test_a_copy_is_whole_after_a_restart_in_the_middle(
    own: RemoteStore, tmp_path: Path
) -> None:
    store = opened(own)
    chunk = await store.write_chunk("job-1", 0, SCHEMA, [rows(10)])
    target = tmp_path / "copy"
    target.write_bytes(b"what came of an earlier try, and more than there will be" * 100)
    own.kill()
    copying = asyncio.ensure_future(store.copy_chunk("job-1", chunk, target))
    await asyncio.to_thread(own.start)
    await copying
    assert target.stat().st_size == chunk.size_bytes
