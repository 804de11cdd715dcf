"""Failures that only buckets have: unavailable servers and modified objects."""

import dataclasses
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pyarrow as pa
import pytest

from caraway_core.errors import DiskFullError, ResultStoreError
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins.stores import bucket as bucket_module
from caraway_plugins.stores import chunks
from caraway_plugins.stores.bucket import BucketResultStore
from tests.kit.s3 import S3Server
from tests.plugins.stores import adapters

ROWS = pa.RecordBatch.from_pydict({"n": list(range(10_000))})


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """A server that accepts requests and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class _Refusal(BaseHTTPRequestHandler):
    status, code = 403, b"SignatureDoesNotMatch"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers["content-length"] or 0))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"<Error><Code>%s</Code></Error>" % self.code)

    do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Full(_Refusal):
    status, code = 507, b"XMinioStorageFull"


@pytest.fixture
def refusing_endpoint() -> Iterator[str]:
    """A server that rejects every signature."""
    with _served(_Refusal) as endpoint:
        yield endpoint


@pytest.fixture
def full_endpoint() -> Iterator[str]:
    """A server whose disks are full."""
    with _served(_Full) as endpoint:
        yield endpoint


@contextmanager
def _served(handler: type[_Refusal]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(60)


def objects(server: S3Server, place: ResultPlace) -> dict[str, bytes]:
    assert place.store is not None
    name = place.store.bucket
    found = server.client.list_objects_v2(Bucket=name).get("Contents", [])
    return {
        each["Key"]: server.client.get_object(Bucket=name, Key=each["Key"])["Body"].read()
        for each in found
    }


async def stored(place: ResultPlace, count: int = 1) -> tuple[BucketResultStore, ChunkInfo]:
    store = BucketResultStore.at(place)
    return store, await store.write_chunk("job-1", 0, ROWS.schema, [ROWS] * count)


async def refusal(store: BucketResultStore, chunk: ChunkInfo) -> str:
    with pytest.raises(ResultStoreError) as caught:
        await anext(store.read_chunk("job-1", chunk))
    return caught.value.message


async def failures(store: BucketResultStore) -> list[str]:
    """Call every method that sends requests, and return the errors."""
    chunk = ChunkInfo(0, 1, 1, "0" * 64)

    async def read() -> None:
        await anext(store.read_chunk("job-1", chunk))

    asked = [
        store.check,
        lambda: store.write_chunk("job-1", 0, ROWS.schema, [ROWS]),
        read,
        lambda: store.delete("job-1"),
        store.keys,
    ]
    messages = []
    for ask in asked:
        with pytest.raises(ResultStoreError) as caught:
            await ask()
        messages.append(caught.value.message)
    return messages


async def test_chunk_is_one_arrow_stream_named_by_its_checksum(
    s3_server: S3Server, bucket: ResultPlace
) -> None:
    store, chunk = await stored(bucket)
    await store.check()
    ((name, content),) = objects(s3_server, bucket).items()
    assert name == f"jobs/job-1/00000000-{chunk.checksum}.arrow"
    assert len(content) == chunk.size_bytes
    assert pa.ipc.open_stream(content).read_all().num_rows == chunk.row_count


@pytest.mark.parametrize("prefix", ["", "a/b", "a/b/"])
async def test_prefixes_and_neighbours_stay_apart(
    s3_server: S3Server, bucket: ResultPlace, prefix: str
) -> None:
    assert bucket.store is not None
    store, _ = await stored(dataclasses.replace(bucket, path=prefix))
    foreign = ("job-10/x", "x", f"{prefix.strip('/')}2/job-2/x")
    for path in foreign:
        s3_server.put(bucket.store.bucket, path, b"of somebody else")
    assert "job-1" in await store.keys()
    await store.delete("job-1")
    assert "job-1" not in await store.keys()
    assert set(objects(s3_server, bucket)) == {path.strip("/") for path in foreign}


@pytest.mark.parametrize("place", [0, 5, 40_000, -1])
async def test_object_with_one_wrong_bit_is_refused(
    s3_server: S3Server, bucket: ResultPlace, place: int
) -> None:
    store, chunk = await stored(bucket)
    ((name, content),) = objects(s3_server, bucket).items()
    damaged = bytearray(content)
    damaged[place] ^= 1
    assert bucket.store is not None
    s3_server.put(bucket.store.bucket, name, bytes(damaged))
    assert "chunk 0 is damaged" in await refusal(store, chunk)


@pytest.mark.parametrize("change", [b"", b"x"])
async def test_object_of_another_length_is_refused(
    s3_server: S3Server, bucket: ResultPlace, change: bytes
) -> None:
    store, chunk = await stored(bucket)
    ((name, content),) = objects(s3_server, bucket).items()
    assert bucket.store is not None
    s3_server.put(bucket.store.bucket, name, content + change if change else content[:-1])
    assert "chunk 0 is damaged" in await refusal(store, chunk)


async def test_object_that_is_gone_says_so(bucket: ResultPlace) -> None:
    store, chunk = await stored(bucket)
    await store.delete("job-1")
    assert "it expired or was deleted; run the query again" in await refusal(store, chunk)


async def test_large_chunk_goes_in_parts_and_is_read_in_groups(
    s3_server: S3Server, bucket: ResultPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "_MULTIPART_BYTES", 0)
    monkeypatch.setattr(bucket_module, "_PART_BYTES", 5 * chunks.MIB)
    monkeypatch.setattr(chunks, "MOST_IN_MEMORY", 0)
    store, chunk = await stored(bucket, count=150)
    assert chunk.size_bytes > 10 * chunks.MIB
    assert [found async for found in store.read_chunk("job-1", chunk)] == [ROWS] * 150
    ((name, content),) = objects(s3_server, bucket).items()
    assert bucket.store is not None
    s3_server.put(bucket.store.bucket, name, content[:-1] + b"x")
    assert "chunk 0 is damaged" in await refusal(store, chunk)


async def test_many_objects_are_deleted(s3_server: S3Server, bucket: ResultPlace) -> None:
    assert bucket.store is not None
    for number in range(30):
        s3_server.put(bucket.store.bucket, f"jobs/job-1/{number}", b"x")
    await BucketResultStore.at(bucket).delete("job-1")
    assert objects(s3_server, bucket) == {}


async def test_server_that_is_away_is_told_without_secrets(s3_server: S3Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    place = adapters.bucket_place(s3_server, "b-1", endpoint=f"http://127.0.0.1:{port}")
    for message in await failures(BucketResultStore.at(place)):
        assert "'s3://b-1/jobs" in message and "cannot be reached" in message
        assert "wJalr" not in message and "AKIA" not in message and "http" not in message


async def test_server_that_does_not_answer_is_given_up(
    s3_server: S3Server, silent_endpoint: str
) -> None:
    place = adapters.bucket_place(s3_server, "b-1", endpoint=silent_endpoint)
    assert place.store is not None
    store = BucketResultStore(place.store, "jobs", timeout_s=0.05)
    with pytest.raises(ResultStoreError, match="cannot be reached"):
        await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])


async def test_missing_bucket_is_not_a_missing_chunk(s3_server: S3Server) -> None:
    place = adapters.bucket_place(s3_server, "no-such-bucket")
    for message in await failures(BucketResultStore.at(place)):
        assert "does not exist" in message and "check the bucket and the path" in message


async def test_wrong_credentials_are_reported(s3_server: S3Server, refusing_endpoint: str) -> None:
    place = adapters.bucket_place(s3_server, "b-1", endpoint=refusing_endpoint)
    for message in await failures(BucketResultStore.at(place)):
        assert "access is denied (403 Forbidden); check the credentials" in message


async def test_full_server_is_distinguished_from_one_that_is_away(
    s3_server: S3Server, full_endpoint: str
) -> None:
    store = BucketResultStore.at(adapters.bucket_place(s3_server, "b-1", endpoint=full_endpoint))
    with pytest.raises(DiskFullError, match=r"chunk 0 cannot be stored: .* is full"):
        await store.write_chunk("job-1", 0, ROWS.schema, [ROWS])


def test_options_that_make_no_client_are_told_without_their_values() -> None:
    store = StoreSpec("abfss", "c", "results", {"account_key": "not base64!", "nonsense": "1"})
    with pytest.raises(ResultStoreError, match="are not valid for abfss") as caught:
        BucketResultStore.at(ResultPlace("bucket", "", store))
    assert "base64" not in caught.value.message


def test_place_without_a_bucket_is_refused() -> None:
    with pytest.raises(ResultStoreError, match="has no bucket"):
        BucketResultStore.at(ResultPlace("bucket", "x"))
