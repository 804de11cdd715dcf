"""Stores results in a `caraway store`, an HTTP server that shares a folder with the cluster."""

import asyncio
import io
import tempfile
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import httpx
import pyarrow as pa

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import DiskFullError, ResultStoreAwayError, ResultStoreError
from caraway_core.process import disks
from caraway_core.protocols.results import ChunkInfo
from caraway_core.security import signatures
from caraway_core.tables import ResultPlace
from caraway_plugins.stores import chunks

PATIENCE_S = 30.0
"""How long a call is retried, which covers a restart of the store."""
_CONNECT_S = 5.0
_ANSWER_S = 30.0
_CALLS_AT_ONCE = 8
_DELAYS = Delays(0.1, 2.0)
_COPYING = "the disk of this process cannot hold a copy"
_AGAIN = (408, 422, 429, 502, 503, 504)
_Result = TypeVar("_Result")


class _AwayError(Exception):
    """A call failed, but may succeed if it is retried."""


class RemoteResultStore:
    """Keeps chunks as Arrow IPC streams under names that contain their checksums.

    Every call is therefore idempotent, and is retried for a limited time while the store is away.
    Calls run in separate threads, because several event loops use one store and a hanging store
    must not block their threads.
    """

    def __init__(
        self, address: str, prefix: str, token: str, patience_s: float = PATIENCE_S
    ) -> None:
        self._address = address
        self._prefix = prefix.strip("/")
        self._patience_s = patience_s
        self._threads = ThreadPoolExecutor(_CALLS_AT_ONCE, "store")
        self._client = httpx.Client(
            base_url=f"http://{address}",
            headers={"Accept-Encoding": "identity"},
            auth=_Signing(token),
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=_CALLS_AT_ONCE, keepalive_expiry=60),
            # Proxies from the environment are not for connections inside the cluster.
            trust_env=False,
        )
        weakref.finalize(self, _close, self._client, self._threads)

    @classmethod
    def at(cls, place: ResultPlace) -> "RemoteResultStore":
        """Open the store at a place; nothing is sent yet.

        Raises:
            ResultStoreError: the place is not in a `caraway store`.
        """
        if place.store is None or place.store.kind != "caraway":
            raise ResultStoreError(f"result store '{place.path}' is not in a `caraway store`")
        return cls(place.store.bucket, place.path, place.store.options.get("token", ""))

    async def check(self) -> None:
        """Let the store write a small file, to detect a wrong token or a full disk early.

        Raises:
            ResultStoreError: the store does not respond, denies access, or cannot write.
        """
        title = "result store cannot be used"
        await self._run(lambda: self._persistently(title, lambda: self._ask("POST", "/check")))

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        """Store one chunk; the chunk is durable when this returns.

        Raises:
            CarawayError: the key or the index is not valid in a chunk name.
            ResultStoreError: the chunk cannot be stored.
        """
        return await self._run(lambda: self._write(key, index, schema, batches, checksum))

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, after a check of all of its bytes.

        Raises:
            CarawayError: the key or the checksum is not valid in a chunk name.
            ResultStoreError: the chunk is missing or damaged.
        """
        groups = await self._run(lambda: self._read(key, chunk))
        # As in the folder store, the file of a large chunk is closed with its last reference.
        while (group := await self._run(lambda: next(groups, None))) is not None:
            for batch in group:
                yield batch

    async def copy_chunk(self, key: str, chunk: ChunkInfo, target: Path) -> None:
        """Write the bytes of a chunk to a file; the caller must verify them.

        Raises:
            CarawayError: the key or the checksum is not valid in a chunk name.
            ResultStoreError: the chunk is missing, has the wrong size, or cannot be written.
        """
        path, title = self._chunk(key, chunk), _title(key, chunk.index, "read")

        def copy() -> None:
            with disks.failing(_COPYING), target.open("wb") as file:
                self._bring(path, key, chunk, file)

        await self._run(lambda: self._persistently(title, copy))

    async def delete(self, key: str) -> None:
        """Delete all chunks of the key atomically, if there are any."""
        path = f"/chunks/{self._below(chunks.checked_key(key))}"
        title = f"result '{key}' cannot be deleted"
        await self._run(lambda: self._persistently(title, lambda: self._ask("DELETE", path)))

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        path, title = f"/keys/{self._prefix}", "results cannot be listed"

        def ask() -> list[str]:
            found: list[str] = self._ask("GET", path).json()["keys"]
            return found

        return await self._run(lambda: self._persistently(title, ask))

    def _write(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str,
    ) -> ChunkInfo:
        folder, title = self._below(chunks.checked_key(key)), _title(key, index, "stored")
        content = io.BytesIO()
        try:
            chunk = chunks.write(content, index, schema, batches, checksum)
        except pa.ArrowException as exc:
            raise ResultStoreError(f"{title}: its rows are not valid Arrow data") from exc
        path = f"/chunks/{folder}/{chunks.file_name(index, chunk.checksum)}"
        length = {"Content-Length": str(chunk.size_bytes)}
        with content.getbuffer() as view:
            self._persistently(title, lambda: self._ask("PUT", path, _blocks(view), length))
        return chunk

    def _read(self, key: str, chunk: ChunkInfo) -> Iterator[Sequence[pa.RecordBatch]]:
        path, title = self._chunk(key, chunk), _title(key, chunk.index, "read")
        if chunk.size_bytes <= chunks.MOST_IN_MEMORY:
            held = self._persistently(title, lambda: self._fetch(path, key, chunk))
            return iter([chunks.unpack(held, key, chunk)])
        file = self._persistently(title, lambda: self._spool(path, key, chunk))
        return _read(file, key, chunk)

    def _fetch(self, path: str, key: str, chunk: ChunkInfo) -> pa.Buffer:
        held = chunks.allocated(chunk.size_bytes)
        view, filled = memoryview(held).cast("B"), 0
        with self._got(path, key, chunk) as answer:
            for block in answer.iter_raw():
                view[filled : filled + len(block)] = block
                filled += len(block)
        return held

    def _spool(self, path: str, key: str, chunk: ChunkInfo) -> BinaryIO:
        """Download a large chunk to an unnamed file, so that it is verified before it is read."""
        file = tempfile.TemporaryFile()
        try:
            with disks.failing(_COPYING):
                self._bring(path, key, chunk, file)
                file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def _bring(self, path: str, key: str, chunk: ChunkInfo, file: BinaryIO) -> None:
        with self._got(path, key, chunk) as answer:
            for block in answer.iter_raw():
                file.write(block)

    @contextmanager
    def _got(self, path: str, key: str, chunk: ChunkInfo) -> Iterator[httpx.Response]:
        with self._client.stream("GET", path) as answer:
            if answer.status_code == 404:
                raise chunks.gone(key, chunk.index)
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            if answer.headers.get("content-length") != str(chunk.size_bytes):
                raise chunks.damaged(key, chunk)
            yield answer

    def _ask(
        self,
        method: str,
        path: str,
        content: Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        answer = self._client.request(method, path, content=content, headers=headers)
        if not answer.is_success:
            raise _refusal(answer)
        return answer

    def _persistently(self, title: str, call: Callable[[], _Result]) -> _Result:
        """Call a function, and retry it while the store is away.

        Raises:
            ResultStoreError: the store rejected the call, or was away for too long.
        """
        deadline = time.monotonic() + self._patience_s
        again = Backoff(_DELAYS)
        while True:
            try:
                return call()
            except (httpx.TransportError, _AwayError) as exc:
                pause_s = again.failed()
                # The interpreter waits for these threads when the process exits.
                is_over = time.monotonic() + pause_s > deadline
                if is_over or not threading.main_thread().is_alive():
                    raise ResultStoreAwayError(
                        f"{title}: the store at {self._address} does not respond: "
                        f"{exc or type(exc).__name__}; check that `caraway store` runs there"
                    ) from exc
            except (DiskFullError, ResultStoreError) as exc:
                if exc.message.startswith("result '"):
                    raise  # The message already names the result.
                raise type(exc)(f"{title}: {exc.message}") from exc
            time.sleep(pause_s)

    def _chunk(self, key: str, chunk: ChunkInfo) -> str:
        name = chunks.file_name(chunk.index, chunk.checksum)
        return f"/chunks/{self._below(chunks.checked_key(key))}/{name}"

    def _below(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Signing(httpx.Auth):
    """Signs each request with the token of the cluster."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        target = request.url.raw_path.decode("ascii")
        request.headers["Authorization"] = signatures.sign(self._token, request.method, target)
        yield request


def _close(client: httpx.Client, threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False)
    client.close()


def _title(key: str, index: int, what: str) -> str:
    return f"result '{key}': chunk {index} cannot be {what}"


def _refusal(answer: httpx.Response) -> Exception:
    text = answer.text.strip() or f"the store returned {answer.status_code}"
    if answer.status_code in _AGAIN:
        return _AwayError(text)
    match answer.status_code:
        case httpx.codes.INSUFFICIENT_STORAGE:
            return DiskFullError(text)
        case httpx.codes.INTERNAL_SERVER_ERROR:
            return ResultStoreAwayError(text)  # The disk of the store fails.
        case _:
            return ResultStoreError(text)


def _blocks(content: memoryview) -> Iterator[bytes]:
    for start in range(0, len(content), chunks.MIB):
        yield bytes(content[start : start + chunks.MIB])


def _read(file: BinaryIO, key: str, chunk: ChunkInfo) -> Iterator[Sequence[pa.RecordBatch]]:
    with file:
        yield from chunks.read(file, key, chunk)
