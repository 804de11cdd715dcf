"""The routes of the chunk store, without a socket."""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway_cluster.store import messages
from caraway_cluster.store.application import BLOCK_BYTES, ByteRange, StoreApplication, parse_range
from caraway_cluster.store.chunk_folder import ChunkFolder
from caraway_plugins.stores.durable import UnfinishedFiles
from tests.cluster.store.store_requests import CONTENT, PATH, SIGNED, name

WHOLE = ByteRange(0, 10, is_whole=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[StoreApplication]:
    store = StoreApplication(ChunkFolder(folder), "tok-en", 20 * BLOCK_BYTES, has_metrics=True)
    yield store
    store.close()


@pytest.fixture
def client(store: StoreApplication) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(store)
    return httpx.AsyncClient(transport=transport, base_url="http://store.test", headers=SIGNED)


async def test_a_chunk_is_read_completely_or_in_part(client: httpx.AsyncClient) -> None:
    assert (await client.put(PATH, content=CONTENT)).status_code == 201
    whole = await client.get(PATH)
    assert (whole.status_code, whole.content) == (200, CONTENT)
    assert whole.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    part = await client.get(PATH, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, CONTENT[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(CONTENT)}"
    behind = await client.get(PATH, headers={"range": f"bytes={len(CONTENT)}-"})
    assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{len(CONTENT)}")
    head = await client.head(PATH)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(CONTENT)))
    assert head.content == b""


async def test_a_large_chunk_is_transferred_in_blocks(client: httpx.AsyncClient) -> None:
    content = os.urandom(3 * BLOCK_BYTES + 17)
    path = f"/chunks/key/{name(content)}"

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 70_000):
            yield content[start : start + 70_000]

    length = {"content-length": str(len(content))}
    assert (await client.put(path, content=pieces(), headers=length)).status_code == 201
    assert (await client.get(path)).content == content


async def test_if_none_match_rejects_an_existing_chunk(client: httpx.AsyncClient) -> None:
    fresh = {"if-none-match": "*"}
    assert (await client.put(PATH, content=CONTENT, headers=fresh)).status_code == 201
    assert (await client.put(PATH, content=CONTENT)).status_code == 201
    assert (await client.put(PATH, content=CONTENT, headers=fresh)).status_code == 412


async def test_keys_are_listed_and_deleted(client: httpx.AsyncClient) -> None:
    for key in ("b", "a"):
        await client.put(f"/chunks/id/jobs/{key}/{name(CONTENT)}", content=CONTENT)
    assert (await client.get("/keys/id/jobs")).json() == {"keys": ["a", "b"]}
    assert (await client.get("/keys/id")).json() == {"keys": []}
    assert (await client.get("/keys/")).json() == {"keys": []}
    assert (await client.get("/keys/none")).json() == {"keys": []}
    for _ in range(2):
        assert (await client.delete("/chunks/id/jobs/a")).status_code == 204
    assert (await client.get("/keys/id/jobs")).json() == {"keys": ["b"]}
    missing = await client.get(f"/chunks/id/jobs/a/{name(CONTENT)}")
    assert (missing.status_code, missing.text) == (404, "no such chunk\n")


async def test_a_checksum_mismatch_is_rejected(client: httpx.AsyncClient, folder: Path) -> None:
    refused = await client.put(PATH, content=CONTENT[:-1] + b"x")
    assert refused.status_code == 422 and "does not match" in refused.text
    assert (await client.get(PATH)).status_code == 404
    assert not list((folder / ".unfinished").iterdir())


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
async def test_a_body_with_another_length_is_rejected(client: httpx.AsyncClient, size: int) -> None:
    refused = await client.put(PATH, content=CONTENT, headers={"content-length": str(size)})
    assert refused.status_code == 400


async def test_the_size_of_a_chunk_is_limited(client: httpx.AsyncClient) -> None:
    large = {"content-length": str(20 * BLOCK_BYTES + 1)}
    refused = await client.put(PATH, content=b"", headers=large)
    assert refused.status_code == 413 and "--max-chunk" in refused.text

    async def unknown() -> AsyncIterator[bytes]:
        yield CONTENT

    assert (await client.put(PATH, content=unknown())).status_code == 411


@pytest.mark.parametrize(
    "path",
    [
        "/chunks/%2e%2e/key/" + name(CONTENT),
        "/chunks/%2e%2e%2fkey/" + name(CONTENT),
        "/chunks/.unfinished/" + name(CONTENT),
        "/chunks//" + name(CONTENT),
        "/chunks/" + name(CONTENT),
        "/chunks/k%00/" + name(CONTENT),
        "/chunks/" + "a/" * 11 + name(CONTENT),
        "/chunks/key/other",
        "/chunks/key/",
        "/chunks",
    ],
)
async def test_paths_cannot_leave_the_folder(
    client: httpx.AsyncClient, folder: Path, path: str
) -> None:
    before = sorted(folder.parent.rglob("*"))
    for method in ("GET", "PUT"):
        url = httpx.URL(client.base_url).copy_with(raw_path=path.encode())
        answer = await client.request(method, url, content=CONTENT if method == "PUT" else None)
        assert answer.status_code == 400, method
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize("path", ["/chunks/%2e%2e", "/chunks/", "/chunks/.unfinished", "/chunks"])
async def test_only_keys_can_be_deleted(client: httpx.AsyncClient, path: str) -> None:
    url = httpx.URL(client.base_url).copy_with(raw_path=path.encode())
    assert (await client.delete(url)).status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", PATH), ("PUT", PATH), ("DELETE", "/chunks/key"), ("GET", "/keys/"),
     ("POST", "/check"), ("GET", "/other")],
)  # fmt: skip
@pytest.mark.parametrize("token", ["", "Bearer ", "Bearer tok-e", "tok-en", "Bearer é"])
async def test_requests_without_the_token_are_rejected(
    client: httpx.AsyncClient, method: str, path: str, token: str
) -> None:
    headers = {b"authorization": token.encode()}
    refused = await client.request(method, path, headers=headers, content=b"x")
    assert refused.status_code == 401 and "--token-file" in refused.text
    assert refused.headers["connection"] == "close"


async def test_health_and_metrics_need_no_token(client: httpx.AsyncClient) -> None:
    await client.put(PATH, content=CONTENT)
    await client.get(PATH)
    client.headers.pop("authorization")
    assert (await client.get("/health")).text == "ok\n"
    page = (await client.get("/metrics")).text
    assert 'caraway_store_requests_total{method="PUT",status="201"} 1.0' in page
    assert f"caraway_store_stored_bytes_total {float(len(CONTENT))}" in page
    assert f"caraway_store_read_bytes_total {float(len(CONTENT))}" in page


async def test_metrics_are_off_by_default(folder: Path) -> None:
    store = StoreApplication(ChunkFolder(folder), "tok-en", 10, has_metrics=False)
    transport = httpx.ASGITransport(store)
    async with httpx.AsyncClient(transport=transport, headers=SIGNED) as client:
        assert (await client.get("http://store.test/metrics")).status_code == 404
    store.close()


@pytest.mark.parametrize(("method", "path"), [("POST", PATH), ("PUT", "/keys/"), ("GET", "/check")])
async def test_unsupported_methods_are_rejected(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    assert (await client.request(method, path)).status_code == 405


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_is_reported_and_leaves_no_files(
    client: httpx.AsyncClient, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(UnfinishedFiles, "publish", full)
    monkeypatch.setattr(UnfinishedFiles, "try_out", full)
    for answer in (await client.put(PATH, content=CONTENT), await client.post("/check")):
        assert answer.status_code == 507
        assert "the disk of the store is full; enlarge its volume" in answer.text
    assert not list((folder / ".unfinished").iterdir())


async def test_a_disk_error_is_reported(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(UnfinishedFiles, "publish", broken)
    answer = await client.put(PATH, content=CONTENT)
    assert (answer.status_code, answer.text) == (
        500, "the store cannot access its disk: Input/output error\n",
    )  # fmt: skip


async def test_a_chunk_put_while_its_key_is_deleted_is_stored(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, times = UnfinishedFiles.publish, iter([1, 2])

    def raced(workshop: UnfinishedFiles, handle: Any, target: Path) -> None:
        if next(times, 0):
            raise FileNotFoundError(errno.ENOENT, "it was deleted")
        publish(workshop, handle, target)

    monkeypatch.setattr(UnfinishedFiles, "publish", raced)
    assert (await client.put(PATH, content=CONTENT)).status_code == 201
    assert (await client.get(PATH)).content == CONTENT


def scope(method: str, size: int) -> dict[str, Any]:
    return {
        "type": "http", "method": method, "path": PATH,
        "headers": [(b"authorization", b"Bearer tok-en"), (b"content-length", b"%d" % size)],
    }  # fmt: skip


async def test_a_stalled_upload_times_out(
    store: StoreApplication, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PATIENCE_S", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await store(scope("PUT", 10), receive, send)
    assert sent[0]["status"] == 408
    assert not list((folder / ".unfinished").iterdir())


async def test_a_disconnect_during_upload_leaves_no_files(
    store: StoreApplication, folder: Path
) -> None:
    arriving = iter(
        [{"type": "http.request", "body": b"abc", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Any:
        return next(arriving)

    async def send(message: Any) -> None:
        raise AssertionError("the client has disconnected")

    await store(scope("PUT", 10), receive, send)
    assert not list((folder / ".unfinished").iterdir())


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-5", ByteRange(2, 6)),
        ("bytes=2-", ByteRange(2, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-30", ByteRange(0, 10)),
        ("bytes=9-99", ByteRange(9, 10)),
        ("bytes=10-", None),
        ("bytes=-0", None),
        ("", WHOLE),
        ("bytes=-", WHOLE),
        ("bytes=5-2", WHOLE),
        ("bytes=0-1,3-4", WHOLE),
        ("rows=0-1", WHOLE),
        ("bytes=0-" + "9" * 40, WHOLE),
    ],
)
def test_range_header_selects_bytes(header: str, expected: ByteRange | None) -> None:
    assert parse_range(header, 10) == expected
